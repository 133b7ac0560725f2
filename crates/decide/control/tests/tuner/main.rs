//! The tuner on jobs whose speed and power at each setting are known.

mod knob;
mod properties;
mod remembered;
mod savings;
mod test_job;

use sweetspot_control::tune::{
    EarlyStop, GiveUpReason, JobLength, TuneEvent, TuneNotice, TuneOutcome, WindowPurpose,
};
use sweetspot_decide::{Criteria, Objective};
use sweetspot_quantity::{Ratio, Seconds, Watts};
use test_job::{TestJob, curve, test_config};

/// Whether a notice was given that meets a condition.
fn was_notified(job: &TestJob, condition: impl Fn(&TuneNotice) -> bool) -> bool {
    job.notices.iter().any(condition)
}

#[test]
fn the_best_setting_is_found_within_a_minute_and_held() {
    let mut job = TestJob::new(test_config(Objective::Edp.into()), curve());
    job.noise = 0.003;
    job.run(150.0);
    let best = job.best(|time, energy| time * energy);
    let tuned = job.finish();
    let load = &tuned.loads[0];
    let regret = |point: usize| {
        let value = |point: usize| curve()[point].0.powi(-2) * curve()[point].1;
        value(point) / value(best) - 1.0
    };
    let choice = load.choice.unwrap();
    assert!(regret(choice) < 0.01, "{choice} for {best}");
    let took = load.found_at.unwrap() - load.steady_since.unwrap();
    assert!(took < Seconds::new(60.0), "{took}");
    assert_eq!(tuned.loads.len(), 1);
    let claim = load.savings.unwrap();
    let saved = {
        let energy = |point: usize| curve()[point].1 / curve()[point].0;
        1.0 - energy(choice) / energy(0)
    };
    assert!(claim.energy_saved.low.get() <= saved && saved <= claim.energy_saved.high.get());
    assert_eq!(tuned.windows[0].purpose, WindowPurpose::Reference);
    assert!(!tuned.ended_early && tuned.gave_up.is_none());
}

#[test]
fn a_changed_load_is_tuned_with_its_own_reference() {
    let mut job = TestJob::new(test_config(Objective::Edp.into()), curve());
    job.run(100.0);
    let slower = curve().into_iter().map(|(rate, power)| (rate * 0.6, power));
    job.points = slower.collect();
    job.run(60.0);
    assert!(was_notified(&job, |notice| matches!(
        notice,
        TuneNotice::LoadChanged { .. }
    )));
    let tuned = job.finish();
    assert_eq!(tuned.loads.len(), 2);
    let found = tuned.loads[1].found_at.unwrap();
    assert!(found < Seconds::new(160.0), "{found}");
    let mut second = tuned
        .windows
        .iter()
        .filter(|window| window.purpose == WindowPurpose::Reference);
    let second = second.next_back().unwrap();
    assert!(second.begin > Seconds::new(100.0) && second.point == 0);
}

#[test]
fn a_job_that_ends_while_exploring_has_no_choice() {
    let mut job = TestJob::new(test_config(Objective::Edp.into()), curve());
    job.run(15.0);
    let tuned = job.finish();
    assert!(tuned.ended_early);
    assert_eq!(tuned.loads[0].choice, None);
    assert!(tuned.loads[0].savings.is_none());
}

#[test]
fn a_short_job_stays_at_the_reference() {
    let mut config = test_config(Objective::Edp.into());
    config.job = JobLength::Items(100.0 * 40.0);
    let mut job = TestJob::new(config, curve());
    job.run(30.0);
    let tuned = job.finish();
    assert!(matches!(tuned.gave_up, Some(GiveUpReason::TooShort { .. })));
    assert!(tuned.windows.iter().all(|window| window.point == 0));
}

#[test]
fn a_cap_that_does_not_bind_is_reported() {
    let mut config = test_config(Objective::Edp.into());
    config.lowest_cap = Some(Watts::new(100.0));
    let mut job = TestJob::new(config, vec![(100.0, 80.0); 11]);
    job.run(30.0);
    let tuned = job.finish();
    let why = tuned.gave_up.unwrap().to_string();
    assert!(
        why.contains("the cap does not bind") && why.contains("the knob core-clock"),
        "{why}"
    );
}

#[test]
fn where_all_settings_are_equal_the_reference_is_held() {
    let mut job = TestJob::new(test_config(Objective::Edp.into()), vec![(100.0, 200.0); 11]);
    job.noise = 0.001;
    job.run(120.0);
    let tuned = job.finish();
    assert_eq!(tuned.loads[0].choice, Some(0), "{:?}", tuned.notices);
    assert_eq!(
        tuned.loads[0].savings.unwrap().energy_saved.value,
        Ratio::ZERO
    );
}

#[test]
fn a_single_setting_is_held() {
    let mut config = test_config(Objective::Edp.into());
    config.space = test_job::space(1);
    config.labels.truncate(1);
    let mut job = TestJob::new(config, vec![(100.0, 200.0)]);
    job.run(60.0);
    assert_eq!(job.sets, [0]);
    assert_eq!(job.finish().loads[0].choice, Some(0));
}

#[test]
fn exploring_ends_when_it_draws_too_much_energy() {
    let mut config = test_config(Objective::Edp.into());
    // One point has a third of the power at the same rate, so all other windows are expensive.
    let cheap = |point: usize| (100.0, if point == 10 { 100.0 } else { 300.0 });
    config.job = JobLength::Time(Seconds::new(400.0));
    let mut job = TestJob::new(config, (0..11).map(cheap).collect());
    job.run(100.0);
    assert!(was_notified(&job, |notice| *notice
        == TuneNotice::StoppedEarly(EarlyStop::Energy)));
    let tuned = job.finish();
    let took = tuned.loads[0].found_at.unwrap() - tuned.loads[0].steady_since.unwrap();
    assert!(took < Seconds::new(40.0), "{took}");
}

#[test]
fn tuning_resumes_after_a_stall() {
    let mut job = TestJob::new(test_config(Objective::Edp.into()), curve());
    job.run(14.0);
    job.stalled = true;
    job.run(30.0);
    assert!(was_notified(&job, |notice| matches!(
        notice,
        TuneNotice::ProgressStalled(_)
    )));
    let sets = job.sets.len();
    job.stalled = false;
    job.run(100.0);
    assert!(was_notified(&job, |notice| *notice == TuneNotice::ProgressResumed));
    assert!(job.sets.len() > sets);
    assert!(job.finish().loads[0].choice.is_some());
}

#[test]
fn a_noisy_job_is_given_up() {
    let mut job = TestJob::new(test_config(Objective::Edp.into()), curve());
    job.noise = 0.5;
    job.run(120.0);
    let tuned = job.finish();
    assert!(
        matches!(tuned.gave_up, Some(GiveUpReason::TooNoisy(_))),
        "{:?}",
        tuned.notices
    );
}

#[test]
fn a_rejected_setting_is_excluded_and_several_end_tuning() {
    let mut job = TestJob::new(test_config(Objective::Edp.into()), curve());
    job.rejected = vec![7];
    job.run(120.0);
    let choice = job.finish().loads[0].choice.unwrap();
    assert!(choice != 7);
    let mut job = TestJob::new(test_config(Objective::Edp.into()), curve());
    job.rejected = (1..11).collect();
    job.run(120.0);
    assert!(job.sets.len() < 8, "{:?}", job.sets);
    let tuned = job.finish();
    assert!(matches!(
        tuned.gave_up,
        Some(GiveUpReason::SettingsRejected(_))
    ));
}

#[test]
fn an_external_change_ends_tuning() {
    let mut job = TestJob::new(test_config(Objective::Edp.into()), curve());
    job.run(20.0);
    let sets = job.sets.len();
    job.tell(TuneEvent::ChangedExternally(
        "the cap is 120 W now".to_owned(),
    ));
    job.run(100.0);
    assert_eq!(job.sets.len(), sets);
    assert!(matches!(
        job.finish().gave_up,
        Some(GiveUpReason::ChangedExternally(_))
    ));
}

#[test]
fn a_long_phase_is_a_load_of_its_own() {
    let mut job = TestJob::new(test_config(Objective::Edp.into()), curve());
    job.run(90.0);
    job.tell(TuneEvent::Phase(Some("evaluate".to_owned())));
    job.run(8.0);
    assert!(was_notified(&job, |notice| matches!(
        notice,
        TuneNotice::PhaseChanged(_)
    )));
    job.run(80.0);
    job.tell(TuneEvent::Phase(None));
    let sets = job.sets.len();
    job.run(20.0);
    // The choice of this load is known, so it is set and no other setting is tried.
    let mut tried: Vec<usize> = job.sets[sets..].to_vec();
    tried.retain(|point| *point != 0);
    tried.dedup();
    assert!(tried.len() <= 1, "{:?}", job.sets);
    let tuned = job.finish();
    let phases: Vec<Option<&str>> = tuned
        .loads
        .iter()
        .map(|load| load.phase.as_deref())
        .collect();
    assert_eq!(phases, [Some("evaluate"), None]);
}

#[test]
fn the_power_objective_needs_no_progress() {
    let mut job = TestJob::new(test_config(Criteria::from(Objective::Power)), curve());
    job.stalled = true;
    job.run(100.0);
    let choice = job.finish().loads[0].choice;
    assert_eq!(choice, Some(10));
}

#[test]
fn missing_progress_is_reported_with_the_ways_to_give_it() {
    let mut job = TestJob::new(test_config(Objective::Edp.into()), curve());
    job.stalled = true;
    job.run(70.0);
    let text = job
        .notices
        .iter()
        .map(ToString::to_string)
        .collect::<String>();
    for way in ["sweetspot.progress", "sweetspot_progress", "--progress"] {
        assert!(text.contains(way), "{text}");
    }
    assert_eq!(job.notices.len(), 1);
}

#[test]
fn a_choice_is_searched_for_again_after_the_configured_time() {
    let mut config = test_config(Objective::Edp.into());
    config.retune_every = Some(Seconds::new(60.0));
    let mut job = TestJob::new(config, curve());
    job.run(200.0);
    assert!(was_notified(&job, |notice| *notice == TuneNotice::RetuneDue));
    assert!(job.finish().loads.len() >= 2);
}

#[test]
fn a_cap_above_the_mean_power_may_bind() {
    let mut config = test_config(Objective::Energy.into());
    // The job has pauses between peaks: its mean power is low, and the cap limits the peaks.
    config.lowest_cap = Some(Watts::new(150.0));
    let pauses = curve().into_iter().map(|(rate, power)| (rate, 0.5 * power));
    let mut job = TestJob::new(config, pauses.collect());
    job.run(100.0);
    let tuned = job.finish();
    assert_eq!(tuned.gave_up, None);
    assert_ne!(tuned.loads[0].choice, Some(0));
}

#[test]
fn limits_that_no_setting_meets_are_reported_at_the_reference() {
    let criteria = Criteria {
        limits: vec!["time<=-20%".parse().unwrap()],
        ..Objective::Edp.into()
    };
    let mut job = TestJob::new(test_config(criteria), curve());
    job.run(120.0);
    assert!(was_notified(&job, |notice| *notice == TuneNotice::OutsideLimits));
    assert!(!was_notified(&job, |notice| matches!(
        notice,
        TuneNotice::Holding {
            nothing_better: true,
            ..
        }
    )));
    let tuned = job.finish();
    assert!(tuned.loads[0].outside_limits);
    assert_eq!(tuned.loads[0].choice, Some(0));
}

#[test]
fn a_limit_that_the_reference_violates_is_met_at_a_loss() {
    let criteria = Criteria {
        limits: vec!["average_power<=200W".parse().unwrap()],
        ..Objective::Time.into()
    };
    let mut job = TestJob::new(test_config(criteria), curve());
    job.run(120.0);
    let tuned = job.finish();
    let choice = tuned.loads[0].choice.unwrap();
    assert!(!tuned.loads[0].outside_limits);
    assert!(curve()[choice].1 <= 200.0, "{choice}");
}

#[test]
fn a_job_that_ends_while_retuning_keeps_its_choice() {
    let mut config = test_config(Objective::Edp.into());
    config.retune_every = Some(Seconds::new(30.0));
    let mut job = TestJob::new(config, curve());
    while !was_notified(&job, |notice| *notice == TuneNotice::RetuneDue) {
        job.run(1.0);
    }
    let tuned = job.finish();
    assert!(!tuned.ended_early);
    assert_eq!(tuned.loads.last().unwrap().choice, None);
    assert!(tuned.last_choice().unwrap().choice.is_some());
}

#[test]
fn progress_in_whole_steps_needs_longer_windows() {
    let tune = |step: f64, every: f64| {
        let mut job = TestJob::new(test_config(Objective::Energy.into()), curve());
        (job.step, job.every) = (step, every);
        job.run(300.0);
        job.finish()
    };
    let length = |tuned: &TuneOutcome| {
        let tried = tuned.windows.iter();
        let tried = tried.filter(|window| window.purpose == WindowPurpose::Explore);
        let lengths: Vec<f64> = tried.map(|window| window.time().get()).collect();
        lengths.iter().sum::<f64>() / lengths.len() as f64
    };
    let (fine, coarse) = (tune(0.0, 0.1), tune(64.0, 1.0));
    assert_eq!(coarse.gave_up, None);
    assert!(length(&coarse) > 1.5 * length(&fine));
    for window in &coarse.windows {
        let noise = window.noise.time;
        assert!(
            window.purpose == WindowPurpose::Hold || noise < 0.031,
            "{window:?}"
        );
    }
    let energy = |tuned: &TuneOutcome| {
        let (rate, power) = curve()[tuned.loads[0].choice.unwrap()];
        power / rate
    };
    assert!(energy(&coarse) / energy(&fine) < 1.03);
}
