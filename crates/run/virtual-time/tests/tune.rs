//! `tune` in virtual time, compared with the same job without noise at every setting.

use sweetspot_control::tune::{
    EarlierChoice, GiveUpReason, RatioInterval, SettingsScope, TuneKnob, TuneNotice, TuneRequest,
    TunedJob,
};
use sweetspot_decide::search::StrategyName;
use sweetspot_decide::{Criteria, Objective, Outcome};
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{Fault, Knob, Variant, Workload, find_gpu, find_workload};
use sweetspot_virtual_time::{JobSequence, JobSpec, SimulationError, tune};

const JOB: Seconds = Seconds::new(600.0);

fn job(gpu: &str, networks: &[&str]) -> JobSequence {
    let gpu = find_gpu(gpu).unwrap();
    let study = gpu.1.study.clone();
    let workloads = networks
        .iter()
        .map(|network| find_workload(network, study.as_deref(), &Variant::default()).unwrap());
    let workloads: Vec<Workload> = workloads.collect();
    JobSequence::from_profiles(gpu, workloads, JOB * (1.0 / networks.len() as f64)).unwrap()
}

fn request(criteria: impl Into<Criteria>, seed: u64) -> TuneRequest {
    TuneRequest {
        knob: TuneKnob::PowerCap,
        settings: SettingsScope::default(),
        criteria: criteria.into(),
        strategy: StrategyName::Guided,
        budget: Ratio::new(0.05),
        retune_every: None,
        seed,
    }
}

fn run(request: &TuneRequest, job: &JobSequence) -> Result<TunedJob, SimulationError> {
    tune(request, job, None, &mut |_, _| {})
}

fn true_outcomes(job: &JobSequence, workload: usize, tuned: &TunedJob) -> Vec<Outcome> {
    let outcomes = tuned.settings.iter().map(|settings| {
        let (time, energy, _) = job.outcome_at(workload, *settings).unwrap();
        Outcome::new(time, energy)
    });
    outcomes.collect()
}

fn holds(share: RatioInterval, value: f64) -> bool {
    share.low.get() <= value && value <= share.high.get()
}

/// Ten minutes of training each; `benchmarks/src/bin/tune.rs` tunes all curves.
#[test]
fn published_curves_are_tuned_within_a_minute_at_little_cost() {
    let (mut cases, mut within, mut held) = (0, 0, 0);
    for gpu in ["v100", "quadro_rtx_6000"] {
        for network in ["alexnet", "resnet50", "vgg19", "inception_v4"] {
            let job = job(gpu, &[network]);
            let mut outcomes = None;
            for objective in [Objective::Energy, Objective::Edp, Objective::Eds(2.0)] {
                let tuned = run(&request(objective, 3), &job).unwrap();
                let outcomes = outcomes.get_or_insert_with(|| true_outcomes(&job, 0, &tuned));
                let reference = &outcomes[tuned.reference];
                let value = |outcome: &Outcome| objective.value(outcome, reference).unwrap();
                let best = outcomes.iter().map(value).fold(f64::INFINITY, f64::min);
                let load = &tuned.tuned.loads[0];
                let choice = load.choice.unwrap();
                let name = format!("{gpu} {network} {objective}: {}", tuned.labels[choice]);
                assert_eq!(tuned.tuned.loads.len(), 1, "{name}");
                let took = load.found_at.unwrap() - load.steady_since.unwrap();
                assert!(took < Seconds::new(60.0), "{name}: {took}");
                let cost =
                    load.exploring_cost_against_choice.unwrap().energy / tuned.energy.unwrap();
                assert!(cost < Ratio::new(0.03), "{name}: {cost:?}");
                let own = &outcomes[choice];
                let saved = 1.0 - (own.energy.unwrap() / reference.energy.unwrap()).get();
                cases += 1;
                within += usize::from(value(own) / best - 1.0 <= 0.01);
                held += usize::from(holds(load.savings.unwrap().energy_saved, saved));
            }
        }
    }
    assert!(within * 100 >= cases * 90, "{within} of {cases} within 1 %");
    assert!(held * 100 >= cases * 90, "{held} of {cases} intervals");
}

#[test]
fn a_change_of_load_is_noticed_and_tuned_within_a_minute() {
    let job = job("v100", &["resnet50", "vgg19"]);
    let tuned = run(&request(Objective::Edp, 1), &job).unwrap();
    assert_eq!(tuned.tuned.loads.len(), 2, "{:?}", tuned.tuned.notices);
    let found = tuned.tuned.loads[1].found_at.unwrap() - tuned.begins[1];
    assert!(found < Seconds::new(60.0), "{found}");
}

#[test]
fn limits_hold() {
    let criteria = Criteria {
        limits: vec!["time<=+5%".parse().unwrap()],
        ..Objective::Energy.into()
    };
    let job = job("v100", &["resnet50"]);
    let tuned = run(&request(criteria, 1), &job).unwrap();
    let outcomes = true_outcomes(&job, 0, &tuned);
    let choice = tuned.choice().unwrap();
    let lost = (outcomes[choice].time / outcomes[tuned.reference].time).get() - 1.0;
    assert!(
        (0.0..0.06).contains(&lost),
        "{}: {lost}",
        tuned.labels[choice]
    );
    assert!(choice != tuned.reference);
}

#[test]
fn clocks_save_where_the_cap_does_not_bind() {
    let gpu = find_gpu("v100").unwrap();
    let mut workload =
        find_workload("resnet50", gpu.1.study.as_deref(), &Variant::default()).unwrap();
    for on in &mut workload.profile.on {
        on.switching = Ratio::new(0.3);
        on.memory_activity = Ratio::new(0.3);
    }
    let job = JobSequence::from_profiles(gpu, vec![workload], JOB).unwrap();
    let tuned = run(&request(Objective::Energy, 1), &job).unwrap();
    assert!(matches!(
        tuned.tuned.gave_up,
        Some(GiveUpReason::CapDoesNotBind { .. })
    ));
    let clocks = TuneRequest {
        knob: TuneKnob::CoreClock,
        ..request(Objective::Energy, 1)
    };
    let tuned = run(&clocks, &job).unwrap();
    let choice = tuned.choice().unwrap();
    assert!(
        tuned.settings[choice].core_clock.is_some(),
        "{:?}",
        tuned.tuned.notices
    );
}

#[test]
fn caps_and_clocks_are_tuned_together() {
    let job = job("v100", &["resnet50"]);
    let both = TuneRequest {
        knob: TuneKnob::Both,
        ..request(Objective::Energy, 1)
    };
    let tuned = run(&both, &job).unwrap();
    let load = &tuned.tuned.loads[0];
    let took = load.found_at.unwrap() - load.steady_since.unwrap();
    assert!(took < Seconds::new(60.0), "{took}");
    let energy = |outcome: &Outcome| outcome.energy.unwrap().get();
    let outcomes = true_outcomes(&job, 0, &tuned);
    let best = outcomes.iter().map(energy).fold(f64::INFINITY, f64::min);
    let choice = tuned.choice().unwrap();
    let regret = energy(&outcomes[choice]) / best - 1.0;
    assert!(regret < 0.03, "{}: {regret}", tuned.labels[choice]);
    let clocks = |place: &usize| tuned.settings[*place].core_clock;
    let tried = tuned.tuned.windows.iter().map(|window| window.point);
    assert!(tried.clone().any(|place| clocks(&place).is_some()));
    assert!(tried.clone().any(|place| {
        tuned.settings[place].power_cap != tuned.settings[tuned.reference].power_cap
    }));
}

#[test]
fn a_denied_knob_is_reported() {
    let mut gpu = find_gpu("v100").unwrap();
    gpu.1.faults.push(Fault::write_denied(Knob::CoreClock));
    let workload = find_workload("resnet50", gpu.1.study.as_deref(), &Variant::default()).unwrap();
    let job = JobSequence::from_profiles(gpu, vec![workload], JOB).unwrap();
    let clocks = TuneRequest {
        knob: TuneKnob::CoreClock,
        ..request(Objective::Edp, 1)
    };
    let tuned = run(&clocks, &job).unwrap();
    assert!(
        matches!(tuned.tuned.gave_up, Some(GiveUpReason::SettingsRejected(_))),
        "{:?}",
        tuned.tuned.notices
    );
    assert!(
        tuned
            .tuned
            .windows
            .iter()
            .all(|window| window.point == tuned.reference)
    );
}

#[test]
fn a_gpu_with_one_cap_is_not_tuned() {
    let mut gpu = find_gpu("v100").unwrap();
    gpu.1.cap.min = Watts::new(200.0);
    gpu.1.cap.default = Watts::new(200.0);
    gpu.1.cap.max = Watts::new(200.0);
    let workload = find_workload("resnet50", gpu.1.study.as_deref(), &Variant::default()).unwrap();
    let job = JobSequence::from_profiles(gpu, vec![workload], JOB).unwrap();
    let tuned = run(&request(Objective::Edp, 1), &job).unwrap();
    assert_eq!((tuned.labels.len(), tuned.choice()), (1, Some(0)));
}

#[test]
fn short_jobs_and_mixed_gpus_are_reported() {
    let spec = |gpus: &str, items| JobSpec {
        gpus: Some(gpus.to_owned()),
        network: "resnet50@power_capping_2022".to_owned(),
        items: Some(items),
        ..JobSpec::default()
    };
    let short = JobSequence::new(&[spec("v100", 8_000)], None).unwrap();
    let tuned = run(&request(Objective::Edp, 1), &short).unwrap();
    assert!(matches!(
        tuned.tuned.gave_up,
        Some(GiveUpReason::TooShort { .. })
    ));
    let shorter = JobSequence::new(&[spec("v100", 1_280)], None).unwrap();
    let tuned = run(&request(Objective::Edp, 1), &shorter).unwrap();
    assert!(tuned.tuned.ended_early);
    let both = JobSequence::new(&[spec("v100:2", 400_000)], None).unwrap();
    let tuned = run(&request(Objective::Edp, 1), &both).unwrap();
    assert!(
        tuned
            .choice()
            .is_some_and(|choice| choice != tuned.reference)
    );
}

#[test]
fn an_earlier_choice_is_confirmed_sooner() {
    let job = job("v100", &["resnet50"]);
    let request = request(Objective::Edp, 1);
    let first = run(&request, &job).unwrap();
    let second = tune(&request, &job, first.lasting_choice(), &mut |_, _| {}).unwrap();
    assert_eq!(first.choice(), second.choice());
    let evaluations = |tuned: &TunedJob| tuned.tuned.loads[0].evaluations;
    assert_eq!(evaluations(&second), 2);
    assert!(evaluations(&first) > 3);
    let confirmed =
        |(_, notice): &(Seconds, TuneNotice)| matches!(notice, TuneNotice::RememberedConfirmed(_));
    assert!(second.tuned.notices.iter().any(confirmed));
}

#[test]
fn earlier_settings_of_unlike_gpus_are_confirmed_sooner() {
    let names = ["titan_x_pascal", "titan_x_maxwell"];
    let gpus = names.map(|name| find_gpu(name).unwrap()).to_vec();
    let workload = find_workload("cnn2d", Some("multi_gpu_2018"), &Variant::default()).unwrap();
    let job = JobSequence::on_gpus(gpus, vec![workload], JOB).unwrap();
    let criteria = Criteria {
        limits: vec!["time<=+5%".parse().unwrap()],
        ..Criteria::from(Objective::Energy)
    };
    let request = request(criteria, 7);
    let first = run(&request, &job).unwrap();
    let found = |tuned: &TunedJob| {
        tuned
            .differing_settings(tuned.choice().unwrap())
            .map(<[_]>::to_vec)
    };
    let earlier = first.lasting_choice().unwrap();
    assert!(found(&first).is_some() && earlier.each == found(&first));
    let second = tune(&request, &job, Some(earlier.clone()), &mut |_, _| {}).unwrap();
    assert_eq!(found(&second), found(&first));
    let balanced_at = |tuned: &TunedJob| {
        let mut notices = tuned.tuned.notices.iter();
        let found = notices.find(|(_, notice)| matches!(notice, TuneNotice::Balanced { .. }));
        found.unwrap().0.get()
    };
    let (first_time, second_time) = (balanced_at(&first), balanced_at(&second));
    assert!(
        second_time < 0.5 * first_time,
        "{first_time} s, {second_time} s"
    );
    // Settings that do not fit the job are searched for again.
    let each = earlier.each.map(|each| each.into_iter().rev().collect());
    let swapped = EarlierChoice { each, ..earlier };
    let third = tune(&request, &job, Some(swapped.clone()), &mut |_, _| {}).unwrap();
    assert!(found(&third).is_some() && found(&third) != swapped.each);
}

#[test]
fn unlike_gpus_get_settings_of_their_own_and_the_job_is_as_fast() {
    let names = ["titan_x_pascal", "titan_x_maxwell"];
    let gpus = names.map(|name| find_gpu(name).unwrap()).to_vec();
    let workload = find_workload("cnn2d", Some("multi_gpu_2018"), &Variant::default()).unwrap();
    let job = JobSequence::on_gpus(gpus, vec![workload], JOB).unwrap();
    let tuned = |settings: SettingsScope| {
        let criteria = Criteria {
            limits: vec!["time<=+5%".parse().unwrap()],
            ..Criteria::from(Objective::Energy)
        };
        let request = TuneRequest {
            settings,
            ..request(criteria, 7)
        };
        let tuned = run(&request, &job).unwrap();
        let choice = tuned.choice().unwrap();
        let (time, energy, _) = job
            .outcome_at_each(0, &tuned.settings_of_gpus[choice])
            .unwrap();
        (tuned, time.get(), energy.get())
    };
    let (same, same_time, same_energy) = tuned(SettingsScope::Same);
    let (each, time, energy) = tuned(SettingsScope::Each);
    assert_eq!(same.differing_settings(same.choice().unwrap()), None);
    assert!(each.differing_settings(each.choice().unwrap()).is_some());
    assert!(time < 1.01 * same_time, "{time} s, {same_time} s");
    assert!(energy < 0.97 * same_energy, "{energy} J, {same_energy} J");
    let of_gpus: f64 = each
        .energy_of_gpus
        .iter()
        .flatten()
        .map(|own| own.get())
        .sum();
    assert!((of_gpus / each.energy.unwrap().get() - 1.0).abs() < 1e-9);
}
