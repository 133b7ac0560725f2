//! Valid and invalid axes; plans and the seeds of their runs.

use proptest::prelude::*;
use sweetspot_decide::Preference;
use sweetspot_device::{Domain, Settings};
use sweetspot_quantity::{Joules, Megahertz, Ratio, Seconds, Watts};
use sweetspot_study::{
    AddedRuns, Axis, Certainty, Configuration, Definition, Energies, Energy, EnergyOf, Failure,
    Order, Outline, Plan, Point, PrecisionTarget, RepeatsError, RunEnding, RunRecord, RunResult,
    Status, Subject, Task, Until, WorkloadInfo, parse_axis,
};

fn caps() -> Domain<Watts> {
    Domain::Range {
        min: Watts::new(150.0),
        max: Watts::new(300.0),
    }
}

fn axis(text: &str) -> Result<Vec<f64>, String> {
    parse_axis(text, &caps(), Watts::new(5.0), "v100")
        .map(|axis| axis.values.into_iter().map(Watts::get).collect())
        .map_err(|error| error.to_string())
}

fn cap(watts: f64) -> Configuration {
    let settings = Settings {
        power_cap: Some(Watts::new(watts)),
        ..Settings::default()
    };
    Configuration::on(1).with_settings(settings).with_batch(128)
}

#[test]
fn ranges_lists_and_all_are_read() {
    let all = axis("all").unwrap();
    assert_eq!((all.len(), all[0], all[30]), (31, 150.0, 300.0));
    assert_eq!(axis("150..300:5").unwrap(), all);
    assert_eq!(axis("150W..0.3kW:5W").unwrap(), all);
    assert_eq!(axis("150..170:7.5").unwrap(), [150.0, 157.5, 165.0]);
    assert_eq!(axis("300, 150 ,0.2kW").unwrap(), [300.0, 150.0, 200.0]);
    assert_eq!(axis("200..200:5").unwrap(), [200.0]);
}

#[test]
fn all_includes_both_ends_even_between_steps() {
    let odd = Domain::Range {
        min: Watts::new(101.0),
        max: Watts::new(108.0),
    };
    let all = parse_axis("all", &odd, Watts::new(5.0), "odd").unwrap();
    assert_eq!(all.values, [101.0, 106.0, 108.0].map(Watts::new));
    let levels = Domain::Levels([510.0, 652.0].map(Megahertz::new).to_vec());
    let all = parse_axis("all", &levels, Megahertz::new(5.0), "odd").unwrap();
    assert_eq!(all.values, [510.0, 652.0].map(Megahertz::new));
}

#[test]
fn a_value_between_two_levels_becomes_the_nearest() {
    let clocks =
        |mhz: &[f64]| -> Vec<Megahertz> { mhz.iter().copied().map(Megahertz::new).collect() };
    let levels = Domain::Levels(clocks(&[510.0, 652.0, 802.0]));
    let read = |text: &str| parse_axis(text, &levels, Megahertz::new(1.0), "gpu");
    let axis = read("600..800:100").unwrap();
    assert_eq!(axis.values, clocks(&[652.0, 802.0]));
    let replaced = [(600.0, 652.0), (700.0, 652.0), (800.0, 802.0)];
    assert_eq!(
        axis.replaced,
        replaced.map(|(from, to)| (Megahertz::new(from), Megahertz::new(to)))
    );
    // A clock that the GPU cannot have is no typing error of a few megahertz.
    assert_eq!(
        read("652,900").unwrap_err().to_string(),
        "900 MHz is not supported by gpu: the nearest value is 802 MHz"
    );
}

#[test]
fn invalid_axes_are_rejected_with_a_clear_message() {
    let refused = |text: &str| axis(text).unwrap_err();
    assert_eq!(
        refused(""),
        "the axis `` is empty: write `all`, a range such as 150..300:5, or a list such as 150,180,210"
    );
    assert_eq!(
        refused("300..150:5"),
        "the range `300..150:5` is reversed: write 150..300:5"
    );
    assert_eq!(
        refused("150..300"),
        "the range `150..300` has no step: write 150..300:5, for example"
    );
    assert_eq!(
        refused("150..300:0"),
        "the range `150..300:0` has the wrong step: the step must be more than zero"
    );
    assert_eq!(
        refused("100,200"),
        "100 W is not supported by v100: choose 150 W to 300 W"
    );
    assert_eq!(
        refused("150..400:50"),
        "350 W is not supported by v100: choose 150 W to 300 W"
    );
    assert_eq!(
        refused("200,150,200"),
        "the axis `200,150,200` has 200 W twice"
    );
    assert_eq!(
        refused("150,,200"),
        "in the axis `150,,200`, `` is not a power: write a number and a unit (mW, W, kW, MW)"
    );
    assert_eq!(
        refused("150..300:0.0001"),
        "the axis `150..300:0.0001` has 1500001 values, more than 10000: take a larger step"
    );
    assert!(refused("150..300:5J").contains("`5J` is not a power"));
    assert!(refused("150..1e300:1e-300").contains("more than 10000"));
}

proptest! {
    #[test]
    fn nothing_makes_the_axis_panic_and_what_is_taken_is_offered(text in "[0-9.,:WkJ a-]{0,16}") {
        if let Ok(values) = axis(&text) {
            prop_assert!(!values.is_empty());
            prop_assert!(values.iter().all(|value| (150.0..=300.0).contains(value)));
        }
    }

    #[test]
    fn a_seed_does_not_depend_on_the_order_of_runs(count in 1usize..20, repeat in 1u32..5) {
        let caps: Vec<_> = (0..count).map(|i| cap(150.0 + i as f64)).collect();
        let mut reversed = caps.clone();
        reversed.reverse();
        let plan = |caps: Vec<Configuration>| {
            let axes = vec![Axis::PowerCap];
            Plan::new(axes, caps, cap(300.0), repeat, 7, "v100 resnet50".to_owned())
        };
        let (forth, back) = (plan(caps), plan(reversed));
        let seeds = |plan: &Plan| {
            let mut seeds: Vec<_> = plan.pending(&points(plan), EnergyOf::JobGpus).into_iter().map(|task| {
                let cap = plan.configurations[task.configuration].power_cap().unwrap();
                (cap.get() as u64, plan.seed(task).get())
            }).collect();
            seeds.sort_unstable();
            seeds
        };
        let (forth, back) = (seeds(&forth), seeds(&back));
        prop_assert_eq!(forth.len(), (count + 1) * repeat as usize);
        let mut distinct = forth.clone();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), forth.len());
        prop_assert_eq!(forth, back);
    }
}

#[test]
fn the_reference_is_planned_once() {
    let plan = |caps: &[f64]| {
        let caps = caps.iter().map(|watts| cap(*watts)).collect();
        Plan::new(vec![Axis::PowerCap], caps, cap(300.0), 5, 1, String::new())
    };
    let outside = plan(&[150.0, 200.0]);
    assert_eq!(
        (
            outside.configurations.len(),
            outside.on_axes,
            outside.reference
        ),
        (3, 2, 2)
    );
    let inside = plan(&[300.0, 150.0]);
    assert_eq!(
        (
            inside.configurations.len(),
            inside.on_axes,
            inside.reference
        ),
        (2, 2, 0)
    );
    assert_eq!(
        inside.pending(&points(&inside), EnergyOf::JobGpus).len(),
        10
    );
}

fn points(plan: &Plan) -> Vec<Point> {
    let configurations = plan.configurations.iter();
    configurations
        .map(|configuration| Point::new(configuration.clone(), EnergyOf::JobGpus))
        .collect()
}

fn done(task: Task, time: f64) -> RunRecord {
    let energies = Energies {
        job_gpus: Some(Energy::exact(Joules::new(100.0 * time))),
        ..Energies::default()
    };
    let result = RunResult {
        time: Seconds::new(time),
        energies,
        devices: Vec::new(),
        items: None,
        phases: Vec::new(),
        values: Default::default(),
    };
    RunRecord::new(task, RunEnding::Done(result))
}

fn three(order: Order) -> Plan {
    let caps = vec![cap(150.0), cap(200.0), cap(300.0)];
    let axes = vec![Axis::PowerCap];
    Plan {
        order,
        ..Plan::new(axes, caps, cap(300.0), 2, 1, String::new())
    }
}

fn order(plan: &Plan, points: &[Point]) -> Vec<usize> {
    let pending = plan.pending(points, EnergyOf::JobGpus);
    pending.iter().map(|task| task.configuration).collect()
}

#[test]
fn the_reference_begins_and_every_second_round_is_reversed() {
    let plan = three(Order::Interleaved);
    assert_eq!(order(&plan, &points(&plan)), [2, 0, 1, 2, 1, 0]);
    let plan = three(Order::AsGiven);
    assert_eq!(order(&plan, &points(&plan)), [2, 0, 0, 1, 1, 2]);
    let plan = three(Order::Random);
    let mut drawn = order(&plan, &points(&plan));
    assert_eq!(drawn, order(&plan, &points(&plan)));
    assert_eq!(drawn[0], 2);
    drawn[..3].sort_unstable();
    drawn[3..].sort_unstable();
    assert_eq!(drawn, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn finished_and_failed_configurations_are_not_pending() {
    let plan = three(Order::Interleaved);
    let mut points = points(&plan);
    let task = |configuration, repeat| Task {
        configuration,
        repeat,
    };
    points[0].add(done(task(0, 1), 1.0));
    let failure = Failure::new(Status::OutOfMemory, "too large");
    points[1].add(RunRecord::new(task(1, 0), RunEnding::Failed(failure)));
    assert_eq!(order(&plan, &points), [2, 0, 2]);
    assert_eq!(points[1].status(), Status::OutOfMemory);
    for id in 0..6 {
        assert_eq!(plan.id(plan.task(id).unwrap()), id);
    }
    assert_eq!(plan.task(6), None);
}

#[test]
fn a_configuration_is_repeated_until_its_mean_is_precise() {
    let mut plan = three(Order::AsGiven);
    plan.until = Some(PrecisionTarget {
        half_width: Ratio::new(0.01),
        max_runs: 4,
    });
    let mut points = points(&plan);
    let mut runs = Vec::new();
    while let Some(task) = plan.pending(&points, EnergyOf::JobGpus).first().copied() {
        // The first configuration never becomes precise, the others are at once.
        let time = match (task.configuration, task.repeat % 2) {
            (0, 1) => 2.0,
            _ => 1.0,
        };
        points[task.configuration].add(done(task, time));
        runs.push(task.configuration);
    }
    assert_eq!(runs, [2, 0, 0, 0, 0, 1, 1, 2]);
}

/// The outline of a study of three configurations.
fn outline(definition: &Definition) -> Outline {
    let subject = Subject {
        energy_of: EnergyOf::default(),
        devices: Vec::new(),
        device_name: "v100".to_owned(),
        workload: WorkloadInfo::default(),
    };
    let plan = Plan {
        repeat: definition.repeat(),
        ..three(Order::Interleaved)
    };
    Outline::new(definition, subject, plan, None).unwrap().0
}

#[test]
fn raised_repeats_give_the_plan_of_a_study_that_started_with_them() {
    let precise = Until::Precision(Ratio::new(0.01));
    let repeat = |repeat| AddedRuns {
        repeat: Some(repeat),
        ..AddedRuns::default()
    };
    for until in [None, Some(precise), Some(Until::Certainty(Certainty::Sure))] {
        let definition = |repeat, at_most| Definition {
            repeat,
            until,
            at_most,
            ..Definition::default()
        };
        for at_most in [None, Some(4), Some(20)] {
            let mut raised = outline(&definition(Some(2), at_most));
            raised.add_runs(&repeat(6)).unwrap();
            let whole = outline(&definition(Some(6), at_most));
            assert_eq!(raised.plan, whole.plan);
            assert_eq!(raised.definition, whole.definition);
            assert_eq!(raised.add_runs(&repeat(5)), Err(RepeatsError::Fewer(6)));
            assert_eq!(raised.plan, whole.plan);
        }
        // The default number of repeats stays the default.
        let mut same = outline(&definition(None, None));
        same.add_runs(&repeat(same.plan.repeat)).unwrap();
        assert_eq!(same.definition.repeat, None);
    }
}

#[test]
fn a_finished_study_can_get_a_target_for_its_runs() {
    let sure = Some(Until::Certainty(Certainty::Sure));
    let started = |repeat, until, at_most| {
        outline(&Definition {
            repeat,
            until,
            at_most,
            ..Definition::default()
        })
    };
    // Five runs are the default without a target, three with it.
    for (repeat, whole) in [(None, Some(5)), (Some(2), Some(2)), (Some(8), Some(8))] {
        let mut raised = started(repeat, None, None);
        let added = AddedRuns {
            until: sure,
            at_most: Some(12),
            ..AddedRuns::default()
        };
        raised.add_runs(&added).unwrap();
        assert_eq!(raised.plan, started(whole, sure, Some(12)).plan);
    }
    // The preference is that of the study, or the one that is given with the target.
    let mut raised = started(None, None, None);
    let added = AddedRuns {
        until: sure,
        prefer: Some(Preference::Energy),
        ..AddedRuns::default()
    };
    raised.add_runs(&added).unwrap();
    let preference = |outline: &Outline| {
        let target = outline.plan.until_sure.as_ref();
        target.map(|target| target.prefer)
    };
    assert_eq!(preference(&raised), Some(Preference::Energy));
    let stored = Definition::parse(&raised.definition.to_toml().unwrap()).unwrap();
    assert_eq!(preference(&outline(&stored)), Some(Preference::Energy));
    let mut same = started(Some(9), None, None);
    let before = same.clone();
    let refused = [
        (None, Some(20), "at-most needs until"),
        (sure, Some(4), "at-most must not be less"),
    ];
    for (until, at_most, message) in refused {
        let added = AddedRuns {
            until,
            at_most,
            ..AddedRuns::default()
        };
        let error = same.add_runs(&added).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(same.plan, before.plan);
    }
}
