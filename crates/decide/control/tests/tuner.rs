//! The tuner against loads that are known: what it finds, and that nothing makes it lose its way.

mod scene;

use proptest::prelude::*;
use scene::{Scene, curve, terms};
use sweetspot_control::tune::{
    Action, Cut, Event, GaveUp, JobLength, Notice, Purpose, Remembered, Share, Tuned, Tuner,
};
use sweetspot_decide::{Criteria, Objective};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

fn said(scene: &Scene, is: impl Fn(&Notice) -> bool) -> bool {
    scene.notices.iter().any(is)
}

#[test]
fn the_best_setting_is_found_within_a_minute_and_held() {
    let mut scene = Scene::new(terms(Objective::Edp.into()), curve());
    scene.noise = 0.003;
    scene.run(150.0);
    let best = scene.best(|time, energy| time * energy);
    let tuned = scene.finish();
    let load = &tuned.loads[0];
    let regret = |place: usize| {
        let value = |place: usize| curve()[place].0.powi(-2) * curve()[place].1;
        value(place) / value(best) - 1.0
    };
    let choice = load.choice.unwrap();
    assert!(regret(choice) < 0.01, "{choice} for {best}");
    let took = load.found_at.unwrap() - load.steady_since.unwrap();
    assert!(took < Seconds::new(60.0), "{took}");
    assert_eq!(tuned.loads.len(), 1);
    let claim = load.claim.unwrap();
    let saved = {
        let energy = |place: usize| curve()[place].1 / curve()[place].0;
        1.0 - energy(choice) / energy(0)
    };
    assert!(claim.energy_saved.low.get() <= saved && saved <= claim.energy_saved.high.get());
    assert_eq!(tuned.windows[0].purpose, Purpose::Reference);
    assert!(!tuned.ended_early && tuned.gave_up.is_none());
}

#[test]
fn a_change_of_load_is_noticed_and_tuned_with_a_reference_of_its_own() {
    let mut scene = Scene::new(terms(Objective::Edp.into()), curve());
    scene.run(100.0);
    let slower = curve().into_iter().map(|(rate, power)| (rate * 0.6, power));
    scene.places = slower.collect();
    scene.run(60.0);
    assert!(said(&scene, |notice| matches!(
        notice,
        Notice::LoadChanged { .. }
    )));
    let tuned = scene.finish();
    assert_eq!(tuned.loads.len(), 2);
    let found = tuned.loads[1].found_at.unwrap();
    assert!(found < Seconds::new(160.0), "{found}");
    let mut second = tuned
        .windows
        .iter()
        .filter(|window| window.purpose == Purpose::Reference);
    let second = second.next_back().unwrap();
    assert!(second.begin > Seconds::new(100.0) && second.place == 0);
}

#[test]
fn a_job_that_ends_during_exploration_is_told_as_such() {
    let mut scene = Scene::new(terms(Objective::Edp.into()), curve());
    scene.run(15.0);
    let tuned = scene.finish();
    assert!(tuned.ended_early);
    assert_eq!(tuned.loads[0].choice, None);
    assert!(tuned.loads[0].claim.is_none());
}

#[test]
fn a_short_job_is_left_at_the_reference() {
    let mut terms = terms(Objective::Edp.into());
    terms.job = JobLength::Items(100.0 * 40.0);
    let mut scene = Scene::new(terms, curve());
    scene.run(30.0);
    let tuned = scene.finish();
    assert!(matches!(tuned.gave_up, Some(GaveUp::TooShort { .. })));
    assert!(tuned.windows.iter().all(|window| window.place == 0));
}

#[test]
fn a_cap_that_does_not_bind_is_said() {
    let mut terms = terms(Objective::Edp.into());
    terms.lowest_cap = Some(Watts::new(100.0));
    let mut scene = Scene::new(terms, vec![(100.0, 80.0); 11]);
    scene.run(30.0);
    let tuned = scene.finish();
    let why = tuned.gave_up.unwrap().to_string();
    assert!(
        why.contains("the cap does not bind") && why.contains("--knob core-clock"),
        "{why}"
    );
}

#[test]
fn where_all_settings_are_equal_the_reference_is_held() {
    let mut scene = Scene::new(terms(Objective::Edp.into()), vec![(100.0, 200.0); 11]);
    scene.noise = 0.001;
    scene.run(120.0);
    let tuned = scene.finish();
    assert_eq!(tuned.loads[0].choice, Some(0), "{:?}", tuned.notices);
    assert_eq!(
        tuned.loads[0].claim.unwrap().energy_saved.value,
        Ratio::ZERO
    );
}

#[test]
fn a_single_setting_is_held() {
    let mut terms = terms(Objective::Edp.into());
    terms.space = scene::space(1);
    terms.labels.truncate(1);
    let mut scene = Scene::new(terms, vec![(100.0, 200.0)]);
    scene.run(60.0);
    assert_eq!(scene.sets, [0]);
    assert_eq!(scene.finish().loads[0].choice, Some(0));
}

#[test]
fn exploring_ends_when_it_draws_too_much_beyond_the_best() {
    let mut terms = terms(Objective::Edp.into());
    // At a third of the power and the same rate, every other window is dear.
    let cheap = |place: usize| (100.0, if place == 10 { 100.0 } else { 300.0 });
    terms.job = JobLength::Time(Seconds::new(400.0));
    let mut scene = Scene::new(terms, (0..11).map(cheap).collect());
    scene.run(100.0);
    assert!(said(&scene, |notice| *notice == Notice::Cut(Cut::Energy)));
    let tuned = scene.finish();
    let took = tuned.loads[0].found_at.unwrap() - tuned.loads[0].steady_since.unwrap();
    assert!(took < Seconds::new(40.0), "{took}");
}

#[test]
fn a_stall_is_waited_out() {
    let mut scene = Scene::new(terms(Objective::Edp.into()), curve());
    scene.run(14.0);
    scene.stalled = true;
    scene.run(30.0);
    assert!(said(&scene, |notice| matches!(notice, Notice::Stalled(_))));
    let sets = scene.sets.len();
    scene.stalled = false;
    scene.run(100.0);
    assert!(said(&scene, |notice| *notice == Notice::GoesOn));
    assert!(scene.sets.len() > sets);
    assert!(scene.finish().loads[0].choice.is_some());
}

#[test]
fn a_noisy_signal_is_refused() {
    let mut scene = Scene::new(terms(Objective::Edp.into()), curve());
    scene.noise = 0.5;
    scene.run(120.0);
    let tuned = scene.finish();
    assert!(
        matches!(tuned.gave_up, Some(GaveUp::TooNoisy(_))),
        "{:?}",
        tuned.notices
    );
}

#[test]
fn a_refused_setting_is_left_out_and_many_are_enough() {
    let mut scene = Scene::new(terms(Objective::Edp.into()), curve());
    scene.refused = vec![7];
    scene.run(120.0);
    let choice = scene.finish().loads[0].choice.unwrap();
    assert!(choice != 7);
    let mut scene = Scene::new(terms(Objective::Edp.into()), curve());
    scene.refused = (1..11).collect();
    scene.run(120.0);
    assert!(scene.sets.len() < 8, "{:?}", scene.sets);
    let tuned = scene.finish();
    assert!(matches!(tuned.gave_up, Some(GaveUp::Refused(_))));
}

#[test]
fn nobody_is_fought_over_a_setting() {
    let mut scene = Scene::new(terms(Objective::Edp.into()), curve());
    scene.run(20.0);
    let sets = scene.sets.len();
    scene.tell(Event::Changed("the cap is 120 W now".to_owned()));
    scene.run(100.0);
    assert_eq!(scene.sets.len(), sets);
    assert!(matches!(scene.finish().gave_up, Some(GaveUp::Changed(_))));
}

#[test]
fn what_an_earlier_run_chose_is_confirmed_or_not() {
    let gain = 0.2;
    let mut good = terms(Objective::Edp.into());
    let best = Scene::new(good.clone(), curve()).best(|time, energy| time * energy);
    let truth = {
        let value = |place: usize| curve()[place].0.powi(-2) * curve()[place].1;
        1.0 - value(best) / value(0)
    };
    good.remembered = Some(Remembered {
        place: best,
        gain: truth,
        expected_regret: Some(0.002),
    });
    let mut scene = Scene::new(good, curve());
    scene.run(40.0);
    assert!(said(&scene, |notice| matches!(
        notice,
        Notice::AsRemembered(_)
    )));
    assert_eq!(scene.sets, [0, best]);
    let mut bad = terms(Objective::Edp.into());
    bad.remembered = Some(Remembered {
        place: 10,
        gain,
        expected_regret: None,
    });
    let mut scene = Scene::new(bad, curve());
    scene.run(100.0);
    assert!(said(&scene, |notice| matches!(
        notice,
        Notice::NotAsRemembered(_)
    )));
    assert!(scene.sets.len() > 3);
}

#[test]
fn a_phase_that_lasts_is_a_load_of_its_own() {
    let mut scene = Scene::new(terms(Objective::Edp.into()), curve());
    scene.run(90.0);
    scene.tell(Event::Phase(Some("evaluate".to_owned())));
    scene.run(8.0);
    assert!(said(&scene, |notice| matches!(
        notice,
        Notice::OtherPhase(_)
    )));
    scene.run(80.0);
    scene.tell(Event::Phase(None));
    let sets = scene.sets.len();
    scene.run(20.0);
    // Its choice is known: it is set, and nothing new is tried.
    let mut tried: Vec<usize> = scene.sets[sets..].to_vec();
    tried.retain(|place| *place != 0);
    tried.dedup();
    assert!(tried.len() <= 1, "{:?}", scene.sets);
    let tuned = scene.finish();
    let phases: Vec<Option<&str>> = tuned
        .loads
        .iter()
        .map(|load| load.phase.as_deref())
        .collect();
    assert_eq!(phases, [Some("evaluate"), None]);
}

#[test]
fn power_alone_needs_no_progress() {
    let mut scene = Scene::new(terms(Criteria::from(Objective::Power)), curve());
    scene.stalled = true;
    scene.run(100.0);
    let choice = scene.finish().loads[0].choice;
    assert_eq!(choice, Some(10));
}

#[test]
fn without_progress_the_three_ways_to_give_it_are_told() {
    let mut scene = Scene::new(terms(Objective::Edp.into()), curve());
    scene.stalled = true;
    scene.run(70.0);
    let told = scene
        .notices
        .iter()
        .map(ToString::to_string)
        .collect::<String>();
    for way in ["sweetspot.progress", "sweetspot_progress", "--progress"] {
        assert!(told.contains(way), "{told}");
    }
    assert_eq!(scene.notices.len(), 1);
}

#[test]
fn a_choice_is_looked_for_again_after_so_long() {
    let mut terms = terms(Objective::Edp.into());
    terms.retune_every = Some(Seconds::new(60.0));
    let mut scene = Scene::new(terms, curve());
    scene.run(200.0);
    assert!(said(&scene, |notice| *notice == Notice::TimeToLookAgain));
    assert!(scene.finish().loads.len() >= 2);
}

/// What the tuned job took against the same items at the reference, true to the scene.
fn saved(scene: &Scene, parts: &[(f64, (f64, f64))]) -> (f64, f64) {
    let time: f64 = parts.iter().map(|(items, (rate, _))| items / rate).sum();
    let energy: f64 = parts
        .iter()
        .map(|(items, (rate, power))| items * power / rate)
        .sum();
    (1.0 - scene.energy / energy, scene.now / time - 1.0)
}

#[test]
fn what_is_done_before_a_change_is_noticed_is_valued_as_the_new_load() {
    let mut held = 0;
    for seed in 0..10 {
        let mut scene = Scene::new(terms(Objective::Edp.into()), curve());
        scene.seed = seed;
        scene.run(150.3 + 0.4 * seed as f64);
        let before = scene.items;
        let faster: Vec<(f64, f64)> = curve()
            .into_iter()
            .map(|(rate, power)| (rate * 7.0, 0.7 * power))
            .collect();
        scene.places = faster.clone();
        scene.run(45.0);
        let after = scene.items - before;
        let (energy, time) = saved(&scene, &[(before, curve()[0]), (after, faster[0])]);
        let whole = scene.finish().whole.unwrap();
        let holds = |share: Share, truth: f64| {
            // Valued as the old load, it would be off by ten points.
            assert!(
                (share.value.get() - truth).abs() < 0.03,
                "{truth} {share:?}"
            );
            share.low.get() <= truth && truth <= share.high.get()
        };
        held += u32::from(holds(whole.energy_saved, energy));
        held += u32::from(holds(whole.time_lost, time));
    }
    assert!(held >= 17, "{held} of 20");
}

#[test]
fn a_mean_below_the_lowest_cap_is_no_proof_that_it_does_not_bind() {
    let mut terms = terms(Objective::Energy.into());
    // Pauses between peaks: the mean is low, and the cap cuts the peaks.
    terms.lowest_cap = Some(Watts::new(150.0));
    let pauses = curve().into_iter().map(|(rate, power)| (rate, 0.5 * power));
    let mut scene = Scene::new(terms, pauses.collect());
    scene.run(100.0);
    let tuned = scene.finish();
    assert_eq!(tuned.gave_up, None);
    assert_ne!(tuned.loads[0].choice, Some(0));
}

#[test]
fn limits_that_nothing_keeps_to_leave_the_reference_and_are_said() {
    let question = Criteria {
        limits: vec!["time<=-20%".parse().unwrap()],
        ..Objective::Edp.into()
    };
    let mut scene = Scene::new(terms(question), curve());
    scene.run(120.0);
    assert!(said(&scene, |notice| *notice == Notice::OutsideLimits));
    assert!(!said(&scene, |notice| matches!(
        notice,
        Notice::Holds {
            nothing_better: true,
            ..
        }
    )));
    let tuned = scene.finish();
    assert!(tuned.loads[0].outside_limits);
    assert_eq!(tuned.loads[0].choice, Some(0));
}

#[test]
fn a_limit_that_the_reference_breaks_is_kept_to_at_a_loss() {
    let question = Criteria {
        limits: vec!["average_power<=200W".parse().unwrap()],
        ..Objective::Time.into()
    };
    let mut scene = Scene::new(terms(question), curve());
    scene.run(120.0);
    let tuned = scene.finish();
    let choice = tuned.loads[0].choice.unwrap();
    assert!(!tuned.loads[0].outside_limits);
    assert!(curve()[choice].1 <= 200.0, "{choice}");
}

#[test]
fn a_choice_that_somebody_else_overrode_is_reported_until_then() {
    let mut scene = Scene::new(terms(Objective::Edp.into()), curve());
    scene.run(120.0);
    let choice = *scene.sets.last().unwrap();
    scene.tell(Event::Changed("the cap is 150 W now".to_owned()));
    // The other's cap saves as well, which is not ours to claim.
    scene.places = vec![(100.0, 50.0); 11];
    scene.run(200.0);
    let tuned = scene.finish();
    assert_eq!(tuned.last_choice().unwrap().choice, Some(choice));
    let at = tuned.gave_up_at.unwrap();
    assert!((at.get() - 120.0).abs() < 1.0, "{at}");
    let saved = tuned.energy_saved.unwrap().get();
    assert!(saved < 120.0 * 280.0 * 0.4, "{saved}");
}

#[test]
fn a_job_that_ends_in_a_second_look_keeps_its_choice() {
    let mut terms = terms(Objective::Edp.into());
    terms.retune_every = Some(Seconds::new(30.0));
    let mut scene = Scene::new(terms, curve());
    while !said(&scene, |notice| *notice == Notice::TimeToLookAgain) {
        scene.run(1.0);
    }
    let tuned = scene.finish();
    assert!(!tuned.ended_early);
    assert_eq!(tuned.loads.last().unwrap().choice, None);
    assert!(tuned.last_choice().unwrap().choice.is_some());
}

#[test]
fn counts_in_whole_steps_take_longer_windows_and_are_tuned_all_the_same() {
    let told = |step: f64, every: f64| {
        let mut scene = Scene::new(terms(Objective::Energy.into()), curve());
        (scene.step, scene.every) = (step, every);
        scene.run(300.0);
        scene.finish()
    };
    let length = |tuned: &Tuned| {
        let tried = tuned.windows.iter();
        let tried = tried.filter(|window| window.purpose == Purpose::Explore);
        let lengths: Vec<f64> = tried.map(|window| window.time().get()).collect();
        lengths.iter().sum::<f64>() / lengths.len() as f64
    };
    let (fine, coarse) = (told(0.0, 0.1), told(64.0, 1.0));
    assert_eq!(coarse.gave_up, None);
    assert!(length(&coarse) > 1.5 * length(&fine));
    for window in &coarse.windows {
        let noise = window.noise.time;
        assert!(
            window.purpose == Purpose::Hold || noise < 0.031,
            "{window:?}"
        );
    }
    let energy = |tuned: &Tuned| {
        let (rate, power) = curve()[tuned.loads[0].choice.unwrap()];
        power / rate
    };
    assert!(energy(&coarse) / energy(&fine) < 1.03);
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (any::<f64>(), any::<f64>()).prop_map(|(at, total)| Event::Energy {
            at: Seconds::new(at),
            total: Joules::new(total)
        }),
        (0.0..300.0, 0.0..1e5).prop_map(|(at, total)| Event::Progress {
            at: Seconds::new(at),
            total
        }),
        (0.0..300.0, 0.0..1e5).prop_map(|(at, total)| Event::Energy {
            at: Seconds::new(at),
            total: Joules::new(total)
        }),
        prop_oneof![Just(None), Just(Some("a".to_owned()))].prop_map(Event::Phase),
        (0..12_usize).prop_map(Event::Applied),
        (0..12_usize).prop_map(|place| Event::Refused {
            place,
            why: "no".to_owned()
        }),
        Just(Event::Tick),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_order_of_events_leads_astray(
        events in prop::collection::vec((0.0..2.0, event()), 0..200),
        end in 0..200_usize,
    ) {
        let mut tuner = Tuner::new(terms(Objective::Edp.into()));
        let mut now = 0.0;
        for (index, (passed, event)) in events.into_iter().enumerate() {
            now += passed;
            let event = if index == end { Event::Ended } else { event };
            for action in tuner.step(Seconds::new(now), event) {
                if let Action::Set(place) = action {
                    prop_assert!(place < 11);
                }
            }
        }
        let tuned = tuner.finish();
        prop_assert!(tuned.loads.iter().all(|load| load.choice.is_none_or(|choice| choice < 11)));
    }

    #[test]
    fn every_search_ends(rates in prop::collection::vec((1.0..200.0, 50.0..300.0), 11), seed in 0..50_u64) {
        let mut scene = Scene::new(terms(Objective::Edp.into()), rates);
        scene.seed = seed;
        scene.run(140.0);
        prop_assert!(scene.sets.len() < 25, "{:?}", scene.sets);
        let tuned = scene.finish();
        prop_assert!(tuned.gave_up.is_some() || tuned.loads[0].choice.is_some());
    }
}
