//! Holders on the simulated P40 in virtual time: caps, sets of batch sizes, and disturbances during a run.
//! `cargo run --release -p sweetspot-benchmarks --bin hold` does the same with every cap.

use sweetspot_control::hold::{DeviceKnob, HoldConfig, HoldMode, HoldNotice};
use sweetspot_quantity::{Megahertz, Ratio, Seconds, Watts};
use sweetspot_sim::{Arrivals, Variant};
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::{Conditions, Disturbance, HoldOutcome, Sensor};

const SIZES: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const CLOCKS: [f64; 10] = [
    544.0, 632.0, 734.0, 835.0, 949.0, 1063.0, 1189.0, 1303.0, 1430.0, 1531.0,
];
const SENSORS: [Sensor; 2] = [Sensor::Averaged, Sensor::Buffered];
/// The number of windows in which the holder settles, at the start and after every disturbance.
const SETTLE_WINDOWS: u64 = 15;

fn server(network: &str, dataset: &str) -> SimulatedServer {
    let variant = Variant {
        dataset: Some(dataset.to_owned()),
        ..Variant::default()
    };
    SimulatedServer::new("tesla_p40", network, &variant).unwrap()
}

fn robust(cap: f64) -> HoldConfig {
    HoldConfig::robust(Watts::new(cap), SIZES.to_vec())
}

fn joint(cap: f64) -> HoldConfig {
    let clocks = CLOCKS.iter().map(|clock| Megahertz::new(*clock)).collect();
    let knob = DeviceKnob::CoreClock(clocks);
    HoldConfig::new(HoldMode::Joint, Watts::new(cap), SIZES.to_vec(), knob)
}

fn run(server: &SimulatedServer, config: HoldConfig, time: f64, sensor: Sensor) -> HoldOutcome {
    let conditions = Conditions {
        sensor,
        ..Conditions::steady(Seconds::new(time), 1)
    };
    server.hold(config, &conditions).unwrap()
}

fn share(outcome: &HoldOutcome) -> f64 {
    outcome.summary.violation_share.map_or(0.0, Ratio::get)
}

/// The items per second and the highest mean power of a second with a fixed batch size.
fn alone(server: &SimulatedServer, size: u64) -> (f64, f64) {
    let config = HoldConfig::robust(Watts::new(1000.0), vec![size]);
    let outcome = run(server, config, 200.0, Sensor::Averaged);
    let most = outcome.summary.largest_mean.unwrap().get();
    (outcome.summary.items_per_s, most)
}

/// The most items per second of a fixed batch size that clearly keeps the cap.
fn best_fixed(fixed: &[(f64, f64)], cap: f64) -> f64 {
    let fitting = fixed.iter().filter(|(_, most)| *most <= 0.995 * cap);
    fitting.map(|(rate, _)| *rate).fold(0.0, f64::max)
}

fn infeasible(outcome: &HoldOutcome) -> usize {
    let said = outcome.notices.iter();
    said.filter(|(_, notice)| matches!(notice, HoldNotice::CapInfeasible { .. }))
        .count()
}

#[test]
fn caps_are_held_without_a_limit_cycle_and_without_loss() {
    for (network, dataset, first) in [
        ("googlenet", "caltech", 50),
        ("resnet152", "imagenet", 53),
        ("mobilenet_v2", "caltech", 56),
        ("nasnet_mobile", "imagenet", 51),
    ] {
        let server = server(network, dataset);
        let fixed: Vec<(f64, f64)> = SIZES.iter().map(|size| alone(&server, *size)).collect();
        for (cap, sensor) in (first..=250)
            .step_by(11)
            .flat_map(|cap| SENSORS.map(|sensor| (f64::from(cap), sensor)))
        {
            let outcome = run(&server, robust(cap), 500.0, sensor);
            let case = format!(
                "{network} {dataset} {cap} W {sensor:?}: {:#?}",
                outcome.summary
            );
            assert!(
                outcome.summary.settle_windows.unwrap() <= SETTLE_WINDOWS,
                "{case}"
            );
            let late = outcome.changes.iter().filter(|(at, ..)| at.get() > 250.0);
            assert!(late.count() <= 4, "{case}");
            assert!(infeasible(&outcome) <= 1, "{case}");
            let best = best_fixed(&fixed, cap);
            if best > 0.0 {
                assert!(share(&outcome) < 0.01, "{case}");
                let least = 0.95 * best;
                assert!(outcome.summary.items_per_s >= least, "{case}: best {best}");
            }
        }
    }
}

#[test]
fn batch_and_clock_together_are_no_worse_than_either() {
    for (network, dataset) in [
        ("inception_v3", "caltech"),
        ("mobilenet_v1", "caltech"),
        ("resnet101", "imagenet"),
    ] {
        let server = server(network, dataset);
        for cap in [88.0, 98.0, 131.0, 165.0, 222.0] {
            let by_batch = run(&server, robust(cap), 900.0, Sensor::Averaged);
            let both = run(&server, joint(cap), 900.0, Sensor::Averaged);
            let clock = HoldConfig {
                mode: HoldMode::Dvfs,
                ..joint(cap)
            };
            let by_clock = run(&server, clock, 900.0, Sensor::Averaged);
            // A clock search that breaks the cap is not comparable.
            let allowed = [&by_batch, &by_clock].into_iter();
            let allowed = allowed.filter(|outcome| share(outcome) < 0.01);
            let best = allowed.map(|outcome| outcome.summary.items_per_s);
            let best = best.fold(0.0, f64::max);
            let case = format!("{network} {dataset} {cap} W: {:#?}", both.summary);
            assert!(share(&both) < 0.01, "{case}");
            let least = 0.98 * best;
            assert!(both.summary.items_per_s >= least, "{case}: best {best}");
        }
    }
}

#[test]
fn any_set_of_sizes_is_searched_in_fifteen_windows() {
    let server = server("resnet50", "caltech");
    let dense: Vec<u64> = (1..=256).collect();
    let twelve = vec![1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
    for sizes in [
        vec![16],
        vec![4, 100],
        vec![1, 3, 10, 30, 100, 300],
        twelve,
        dense,
    ] {
        let fixed: Vec<(f64, f64)> = match sizes.len() {
            256 => Vec::new(),
            _ => sizes.iter().map(|size| alone(&server, *size)).collect(),
        };
        for cap in [80.0, 121.0, 150.0, 240.0] {
            let config = HoldConfig::robust(Watts::new(cap), sizes.clone());
            let outcome = run(&server, config, 400.0, Sensor::Averaged);
            let case = format!("{} sizes, {cap} W: {:#?}", sizes.len(), outcome.summary);
            // The search doubles the size, and then halves the last interval.
            let most = if sizes.len() > 12 { 20 } else { SETTLE_WINDOWS };
            assert!(outcome.summary.settle_windows.unwrap() <= most, "{case}");
            let best = best_fixed(&fixed, cap);
            if best > 0.0 {
                assert!(share(&outcome) < 0.01, "{case}");
                assert!(
                    outcome.summary.items_per_s >= 0.95 * best,
                    "{case}: best {best}"
                );
            }
        }
    }
}

/// A run with disturbances, after each of which the holder settles again.
fn disturbed(config: HoldConfig, script: &[(f64, Disturbance)], sensor: Sensor) -> HoldOutcome {
    let conditions = Conditions {
        sensor,
        script: script
            .iter()
            .map(|(at, what)| (Seconds::new(*at), *what))
            .collect(),
        ..Conditions::steady(Seconds::new(script[script.len() - 1].0 + 200.0), 3)
    };
    server("resnet50", "caltech")
        .hold(config, &conditions)
        .unwrap()
}

fn batch_at(outcome: &HoldOutcome, time: f64) -> u64 {
    let before = outcome
        .changes
        .iter()
        .rev()
        .find(|(at, ..)| at.get() <= time);
    before.map_or(1, |(_, _, setting)| setting.batch)
}

#[test]
fn the_holder_settles_again_after_every_disturbance() {
    type Case = (
        &'static str,
        f64,
        Vec<(f64, Disturbance)>,
        fn(&HoldOutcome) -> bool,
    );
    let cases: [Case; 6] = [
        (
            "the cap is lowered",
            170.0,
            vec![(60.0, Disturbance::Cap(Watts::new(115.0)))],
            |outcome| outcome.last.batch < batch_at(outcome, 59.0),
        ),
        (
            "the cap is raised",
            115.0,
            vec![(60.0, Disturbance::Cap(Watts::new(170.0)))],
            |outcome| outcome.last.batch > batch_at(outcome, 59.0),
        ),
        (
            "inputs become heavier",
            140.0,
            vec![(60.0, Disturbance::Heavier(Ratio::new(1.6)))],
            |outcome| outcome.last.batch < batch_at(outcome, 59.0),
        ),
        (
            "inputs become lighter",
            130.0,
            vec![(60.0, Disturbance::Heavier(Ratio::new(0.6)))],
            |outcome| outcome.last.batch > batch_at(outcome, 59.0),
        ),
        (
            "one reading is false",
            140.0,
            vec![(60.0, Disturbance::FalseSpike(Watts::new(900.0)))],
            |outcome| outcome.last.batch == batch_at(outcome, 59.0),
        ),
        (
            "the sensor stops, and speaks again",
            140.0,
            vec![
                (60.0, Disturbance::Silence(true)),
                (90.0, Disturbance::Silence(false)),
            ],
            |outcome| {
                let said = |wanted: fn(&HoldNotice) -> bool| {
                    outcome
                        .notices
                        .iter()
                        .filter(|(_, notice)| wanted(notice))
                        .count()
                };
                outcome.last.batch == batch_at(outcome, 59.0)
                    && said(|notice| matches!(notice, HoldNotice::SensorStopped { .. })) == 1
                    && said(|notice| matches!(notice, HoldNotice::SensorResumed)) == 1
            },
        ),
    ];
    for (what, cap, script, check) in cases {
        for sensor in SENSORS {
            let outcome = disturbed(robust(cap), &script, sensor);
            let case = format!(
                "{what}, {sensor:?}: {:#?} {:?}",
                outcome.summary, outcome.changes
            );
            assert!(
                outcome.summary.settle_windows.unwrap() <= SETTLE_WINDOWS,
                "{case}"
            );
            assert!(share(&outcome) < 0.01, "{case}");
            assert!(check(&outcome), "{case}");
        }
    }
}

#[test]
fn an_infeasible_cap_is_reported_once() {
    for sensor in SENSORS {
        for cap in [20.0, 49.0, 60.0, 74.0] {
            let config = HoldConfig {
                idle_power: Some(Watts::new(50.0)),
                ..robust(cap)
            };
            let outcome = run(&server("resnet50", "caltech"), config, 900.0, sensor);
            assert_eq!(infeasible(&outcome), 1, "{cap} W: {:?}", outcome.notices);
            let said = outcome.notices.iter();
            let below =
                said.filter(|(_, notice)| matches!(notice, HoldNotice::CapBelowIdle { .. }));
            assert_eq!(below.count(), usize::from(cap <= 50.0), "{cap} W");
            assert!(
                outcome.changes.len() <= 12,
                "{cap} W: {:?}",
                outcome.changes
            );
            assert_eq!(outcome.last.batch, 1, "{cap} W");
        }
    }
}

#[test]
fn an_infeasible_cap_that_is_raised_is_used() {
    let script = [
        (0.5, Disturbance::Cap(Watts::new(60.0))),
        (100.0, Disturbance::Cap(Watts::new(150.0))),
    ];
    let outcome = disturbed(robust(60.0), &script, Sensor::Averaged);
    assert!(outcome.last.batch >= 16, "{:?}", outcome.changes);
    assert!(outcome.summary.settle_windows.unwrap() <= SETTLE_WINDOWS);
}

#[test]
fn a_latency_limit_is_kept_and_an_infeasible_one_is_reported_once() {
    let server = server("resnet50", "caltech");
    let bounded = |bound: f64| HoldConfig {
        latency_p99: Some(Seconds::new(bound)),
        ..robust(200.0)
    };
    for sensor in SENSORS {
        let outcome = run(&server, bounded(0.06), 300.0, sensor);
        // A batch of 16 takes 54 ms and one of 32 twice that.
        assert_eq!(outcome.last.batch, 16, "{:?}", outcome.changes);
        assert!(outcome.summary.settle_windows.unwrap() <= SETTLE_WINDOWS);
        let outcome = run(&server, bounded(0.002), 300.0, sensor);
        let said = outcome.notices.iter();
        let said =
            said.filter(|(_, notice)| matches!(notice, HoldNotice::LatencyInfeasible { .. }));
        assert_eq!(said.count(), 1, "{:?}", outcome.notices);
        assert_eq!(outcome.last.batch, 1);
        assert!(outcome.changes.len() <= 6, "{:?}", outcome.changes);
    }
}

#[test]
fn a_batch_that_does_not_fit_into_memory_is_not_tried_twice() {
    let sizes = vec![1, 16, 256, 2048, 8192];
    let config = HoldConfig::robust(Watts::new(250.0), sizes);
    let outcome = run(
        &server("resnet152", "caltech"),
        config,
        400.0,
        Sensor::Averaged,
    );
    let failed = outcome.notices.iter();
    let failed = failed.filter(|(_, notice)| matches!(notice, HoldNotice::OutOfMemory { .. }));
    assert!(failed.count() <= 2, "{:?}", outcome.notices);
    assert_eq!(outcome.last.batch, 256, "{:?}", outcome.changes);
}

#[test]
fn energy_per_item_is_lower_at_a_lower_clock() {
    let server = server("resnet101", "caltech");
    let energy = |goal| {
        let config = HoldConfig {
            goal,
            ..joint(240.0)
        };
        let outcome = run(&server, config, 900.0, Sensor::Averaged);
        (outcome.summary.energy_per_item.unwrap().get(), outcome.last)
    };
    let fast = energy(sweetspot_control::hold::HoldGoal::Throughput);
    let frugal = energy(sweetspot_control::hold::HoldGoal::EnergyPerItem);
    assert!(frugal.0 < 0.95 * fast.0, "{frugal:?} {fast:?}");
    assert!(frugal.1.core_clock < fast.1.core_clock);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let server = server("googlenet", "caltech");
    let once = || run(&server, robust(120.0), 100.0, Sensor::Buffered);
    assert_eq!(once(), once());
}

fn served(arrivals: &str, config: HoldConfig, time: f64) -> HoldOutcome {
    let conditions = Conditions {
        sensor: Sensor::Buffered,
        arrivals: Some(arrivals.parse::<Arrivals>().unwrap()),
        ..Conditions::steady(Seconds::new(time), 4)
    };
    let server = server("resnet50", "imagenet");
    server.hold(config, &conditions).unwrap()
}

#[test]
fn requests_fill_batches_and_wait_for_them() {
    let one = |size| HoldConfig::robust(Watts::new(1000.0), vec![size]);
    let outcome = served("poisson:40", one(16), 100.0);
    let rate = outcome.summary.items_per_s;
    assert!((rate / 40.0 - 1.0).abs() < 0.1, "{rate}");
    let p99 = outcome.latency_p99(Seconds::ZERO).unwrap().get();
    let alone = served("poisson:1", one(16), 100.0);
    let alone = alone.latency_p99(Seconds::ZERO).unwrap().get();
    assert!(p99 > alone, "{p99} s with a queue, {alone} s without");
    let items = outcome.latencies.iter().map(|(_, _, items)| items);
    assert!(items.clone().all(|items| (1..=16).contains(items)));
    assert!(items.clone().any(|items| *items < 16) && items.clone().any(|items| *items > 1));
    // More requests than the server can serve: the queue grows, and every batch is full.
    let flooded = served("bursts:5000,9000,4s", one(4), 20.0);
    let mut after_the_first = flooded.latencies.iter().skip(1);
    assert!(after_the_first.all(|(_, _, items)| *items == 4));
    let late = flooded.latency_p99(Seconds::new(15.0)).unwrap();
    assert!(late > Seconds::new(5.0), "{late:?}");
    // No request arrives before the end.
    let over = served("poisson:0.001", one(4), 20.0);
    assert_eq!(over.summary.items, 0);
}
