//! The choice of the knob by the tuner.

use sweetspot_control::limit::{Limit, LoadEvidence};
use sweetspot_control::tune::{GiveUpReason, RememberedChoice, TuneConfig, TuneNotice};
use sweetspot_decide::Objective;
use sweetspot_decide::search::{KnobKind, SearchSpace};
use sweetspot_device::{Knob, UnitUse};
use sweetspot_quantity::{Ratio, Watts};

use crate::test_job::{TestJob, curve, test_config};

/// The number of caps; the clocks are the points after them.
const CAPS: usize = 11;

/// Eleven caps and eleven clocks that share the reference.
fn auto_config() -> TuneConfig {
    let mut config = test_config(Objective::Edp.into());
    let clocks: Vec<f64> = (0..CAPS)
        .map(|point| 1500.0 - 60.0 * point as f64)
        .collect();
    config.clocks = SearchSpace::of_one_knob(KnobKind::CoreClock, &clocks).ok();
    let labels = clocks[1..].iter().map(|clock| format!("{clock} MHz"));
    config.labels.extend(labels);
    config.lowest_cap = Some(Watts::new(150.0));
    config.suggests_clocks = false;
    config
}

/// A job on which caps and clocks have the same effect, with this use of cores, tensor units and memory.
fn auto_job(config: TuneConfig, units: Option<[f64; 3]>) -> TestJob {
    let mut points = curve();
    points.extend(curve().into_iter().skip(1));
    let mut job = TestJob::new(config, points);
    let share = |index: usize| units.map(|units| Ratio::new(units[index]));
    job.evidence = Some(LoadEvidence {
        power_cap: Some(Watts::new(300.0)),
        throttled_by_cap: Some(Ratio::new(0.0)),
        units: UnitUse {
            cores: share(0),
            tensor: share(1),
            memory: share(2),
        },
        ..LoadEvidence::default()
    });
    job
}

const MEMORY_BOUND: Option<[f64; 3]> = Some([0.95, 0.1, 0.85]);

#[test]
fn only_settings_of_the_chosen_knob_are_tried() {
    let mut job = auto_job(auto_config(), MEMORY_BOUND);
    job.run(120.0);
    let sets = job.sets.clone();
    assert!(sets.iter().all(|point| *point == 0 || *point >= CAPS));
    let load = &job.finish().loads[0];
    assert_eq!(load.knob, Some(Knob::CoreClock));
    assert_eq!(load.limit.unwrap().limit, Limit::Memory);
    assert!(load.choice.unwrap() >= CAPS);
    let mut job = auto_job(auto_config(), None);
    job.run(120.0);
    assert!(job.sets.iter().all(|point| *point < CAPS), "{:?}", job.sets);
    let load = &job.finish().loads[0];
    assert_eq!(load.knob, Some(Knob::PowerCap));
}

#[test]
fn nothing_is_set_if_no_work_runs() {
    let mut job = auto_job(auto_config(), Some([0.0, 0.0, 0.0]));
    job.run(60.0);
    assert!(job.sets.iter().all(|point| *point == 0), "{:?}", job.sets);
    let tuned = job.finish();
    let reason = tuned.gave_up.unwrap();
    assert!(matches!(reason, GiveUpReason::NothingHelps(_)), "{reason}");
    assert!(reason.to_string().ends_with("no work runs on the GPU"));
}

#[test]
fn a_rejected_knob_is_replaced_once() {
    let clocks: Vec<usize> = (CAPS..2 * CAPS - 1).collect();
    let mut job = auto_job(auto_config(), MEMORY_BOUND);
    job.rejected.clone_from(&clocks);
    job.run(120.0);
    let replaced = |notice: &&TuneNotice| matches!(notice, TuneNotice::OtherKnob { .. });
    assert_eq!(job.notices.iter().filter(replaced).count(), 1);
    let choice = job.finish().loads[0].choice.unwrap();
    assert!((1..CAPS).contains(&choice), "{choice}");
    // Nothing can be set at all.
    let mut job = auto_job(auto_config(), MEMORY_BOUND);
    job.rejected = (1..2 * CAPS - 1).collect();
    job.run(120.0);
    assert!(job.sets.len() < 10, "{:?}", job.sets);
    let tuned = job.finish();
    assert!(matches!(
        tuned.gave_up,
        Some(GiveUpReason::SettingsRejected(_))
    ));
}

#[test]
fn an_earlier_choice_of_the_other_knob_is_confirmed() {
    let mut first = auto_job(auto_config(), None);
    first.run(120.0);
    let load = first.finish().loads[0].clone();
    let remembered = RememberedChoice {
        each: None,
        point: load.choice.unwrap(),
        gain: load.gain.unwrap(),
        expected_regret: load.expected_regret,
    };
    assert!((1..CAPS).contains(&remembered.point));
    let config = TuneConfig {
        remembered: Some(remembered.clone()),
        ..auto_config()
    };
    let mut second = auto_job(config, MEMORY_BOUND);
    second.run(60.0);
    assert_eq!(second.finish().loads[0].choice, Some(remembered.point));
}
