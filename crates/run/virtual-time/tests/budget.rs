//! `budget` in virtual time: the sum stays below the budget, watts go where they bring most, floors and priorities count.
//!
//! `cargo run --release -p sweetspot-benchmarks --bin budget` compares random mixes with the offline optimum.

use sweetspot_control::budget::{
    BudgetAction, BudgetConfig, BudgetEvent, BudgetedDevice, Budgeter, GpuReading,
};
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{Mode, Variant, find_gpu};
use sweetspot_stats::Seed;
use sweetspot_virtual_time::budget::{
    BudgetChange, BudgetOutcome, BudgetPolicy, BudgetScenario, BudgetedGpu, SimulatedProgram,
    simulate_budget,
};

/// The GPUs of the mix with their networks, in training; the last one is idle at first.
const MIX: [(&str, Option<&str>); 5] = [
    ("tesla_v100_sxm2_16gb", Some("resnet50")),
    ("tesla_v100_sxm2_16gb", Some("alexnet")),
    ("quadro_rtx_6000", Some("vgg19")),
    ("tesla_p100", Some("googlenet")),
    ("tesla_v100_sxm2_16gb", None),
];

const TIME: Seconds = Seconds::new(200.0);
/// Between the sum of the lowest caps, 675 W, and that of the default ones, 1410 W.
const BUDGET: Watts = Watts::new(950.0);

fn program(gpu: &str, network: &str) -> SimulatedProgram {
    let variant = Variant {
        mode: Some(Mode::Train),
        ..Variant::default()
    };
    let seed = Seed::new(3).label(network);
    SimulatedProgram::new(&find_gpu(gpu).unwrap(), network, &variant, seed).unwrap()
}

fn scenario(changes: Vec<(Seconds, BudgetChange)>) -> BudgetScenario {
    let gpus = MIX.iter().map(|(name, network)| {
        let mut gpu = BudgetedGpu::new(name).unwrap();
        gpu.run(network.map(|network| program(name, network)));
        gpu
    });
    BudgetScenario {
        gpus: gpus.collect(),
        budget: BUDGET,
        jobs: Vec::new(),
        changes,
        time: TIME,
        seed: 11,
    }
}

/// The policy of `budget` with a priority and a floor for the first GPU.
fn budgeter(priority: f64, floor: Option<Watts>) -> BudgetPolicy {
    let mut options = vec![(1.0, None); MIX.len()];
    options[0] = (priority, floor);
    BudgetPolicy::Budgeter(options)
}

/// The caps at the end, in watts.
fn last_caps(outcome: &BudgetOutcome) -> Vec<f64> {
    let caps = &outcome.samples.last().unwrap().caps;
    caps.iter().map(|cap| cap.get()).collect()
}

fn above(outcome: &BudgetOutcome) -> f64 {
    outcome.statistics.above_share().unwrap().get()
}

#[test]
fn a_budget_brings_more_than_equal_shares_and_is_kept() {
    let scenario = scenario(Vec::new());
    let gpus = scenario.gpus.iter();
    let defaults = gpus.map(|gpu| gpu.profile().cap.default).collect();
    let full = simulate_budget(&scenario, &BudgetPolicy::Fixed(defaults)).items;
    let run = |policy: &BudgetPolicy| {
        let outcome = simulate_budget(&scenario, policy);
        (outcome.normalised_throughput(&full), outcome)
    };
    let shares = vec![1.0 / MIX.len() as f64; MIX.len()];
    let (equal, _) = run(&BudgetPolicy::Shares(shares));
    let (own, outcome) = run(&budgeter(1.0, None));
    assert!(own > 1.01 * equal, "{own}, equal shares {equal}");
    assert!(above(&outcome) < 0.005, "{}", above(&outcome));
    assert!(outcome.highest_caps < 1.0 + 1e-9, "{outcome:?}");
}

#[test]
fn a_budget_is_kept_while_it_changes_and_programs_start_and_end() {
    let at = |seconds: f64, change| (Seconds::new(seconds), change);
    let last = MIX.len() - 1;
    let scenario = scenario(vec![
        at(50.0, BudgetChange::Budget(Watts::new(750.0))),
        at(80.0, BudgetChange::Program(0, None)),
        at(110.0, BudgetChange::Budget(BUDGET)),
        at(
            140.0,
            BudgetChange::Program(last, Some(program(MIX[last].0, "vgg19"))),
        ),
    ]);
    let outcome = simulate_budget(&scenario, &budgeter(1.0, None));
    assert!(above(&outcome) < 0.005, "{}", above(&outcome));
    assert!(outcome.highest_caps < 1.0 + 1e-9, "{outcome:?}");
    let caps = last_caps(&outcome);
    assert!(caps[0] < 151.0, "an idle GPU has its lowest cap: {caps:?}");
    assert!(
        caps[last] > 160.0,
        "a program that starts gets watts: {caps:?}"
    );
}

#[test]
fn priorities_and_floors_give_a_gpu_more() {
    let scenario = scenario(Vec::new());
    let run = |priority: f64, floor: Option<f64>| {
        simulate_budget(&scenario, &budgeter(priority, floor.map(Watts::new)))
    };
    let (usual, preferred) = (run(1.0, None), run(4.0, None));
    let (least, most) = (last_caps(&usual)[0], last_caps(&preferred)[0]);
    assert!(most > least + 10.0, "{least} W, with priority {most} W");
    assert!(preferred.items[0] > 1.02 * usual.items[0]);
    let floor = least + 30.0;
    let floored = run(1.0, Some(floor));
    let later = floored.samples.iter().skip(5);
    for sample in later {
        assert!(sample.caps[0].get() > floor - 1e-6, "{sample:?}");
    }
    for outcome in [&usual, &preferred, &floored] {
        assert!(above(outcome) < 0.005, "{}", above(outcome));
        assert!(outcome.highest_caps < 1.0 + 1e-9);
    }
}

/// Two V100 of one job, the second with a floor: they get the same cap as far as the floor allows, and no GPU does more
/// than the other.
#[test]
fn the_gpus_of_a_job_are_capped_together() {
    let mut gpus = scenario(Vec::new()).gpus;
    let gpu = MIX[0].0;
    gpus[1].run(Some(program(gpu, "resnet50")));
    let scenario = BudgetScenario {
        gpus,
        jobs: vec![vec![0, 1]],
        ..scenario(Vec::new())
    };
    let outcome = simulate_budget(&scenario, &budgeter(1.0, None));
    let caps = last_caps(&outcome);
    assert!((caps[0] - caps[1]).abs() < 3.0, "{caps:?}");
    let ratio = outcome.items[0] / outcome.items[1];
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    assert!(above(&outcome) < 0.005, "{}", above(&outcome));
    let floor = caps[0] + 30.0;
    let floored = simulate_budget(&scenario, &budgeter(1.0, Some(Watts::new(floor))));
    for sample in floored.samples.iter().skip(8) {
        assert!(sample.caps[0].get() > floor - 1e-6, "{sample:?}");
    }
    assert!(above(&floored) < 0.005, "{}", above(&floored));
    assert!(floored.highest_caps < 1.0 + 1e-9);
}

/// Programs that report nothing get what they are seen to take, and the budget is kept.
#[test]
fn programs_without_progress_share_by_the_power_that_they_take() {
    let mut scenario = scenario(Vec::new());
    for (gpu, (name, network)) in scenario.gpus.iter_mut().zip(MIX) {
        gpu.run(network.map(|network| {
            let mut program = program(name, network);
            program.reports = false;
            program
        }));
    }
    let gpus = scenario.gpus.iter();
    let defaults = gpus.map(|gpu| gpu.profile().cap.default).collect();
    let full = simulate_budget(&scenario, &BudgetPolicy::Fixed(defaults)).items;
    let shares = BudgetPolicy::Shares(vec![1.0 / MIX.len() as f64; MIX.len()]);
    let equal = simulate_budget(&scenario, &shares).normalised_throughput(&full);
    let outcome = simulate_budget(&scenario, &budgeter(1.0, None));
    let own = outcome.normalised_throughput(&full);
    assert!(own > equal, "{own}, equal shares {equal}");
    assert!(above(&outcome) < 0.005, "{}", above(&outcome));
    assert!(outcome.highest_caps < 1.0 + 1e-9);
}

/// The median decision counts, because other programs may use the processor during single ones.
#[test]
fn a_decision_for_a_thousand_gpus_takes_less_than_ten_milliseconds() {
    let count = 1000;
    let device = BudgetedDevice::new(Watts::new(100.0), Watts::new(300.0));
    let config = BudgetConfig {
        budget: Watts::new(200.0 * count as f64),
        gpus: vec![device; count],
    };
    let mut budgeter = Budgeter::new(&config).unwrap();
    let mut times = Vec::new();
    for tick in 0..120 {
        let now = Seconds::new(f64::from(tick) * 0.1);
        for gpu in 0..count {
            let reading = GpuReading {
                power: budgeter.cap(gpu).unwrap() * 0.99,
                limited: Some(Ratio::new(1.0)),
                is_busy: true,
            };
            budgeter.step(now, BudgetEvent::Read { gpu, reading });
            let items = now.get() * (10.0 + gpu as f64);
            let at = now;
            budgeter.step(now, BudgetEvent::Progress { gpu, at, items });
        }
        let begun = std::time::Instant::now();
        let actions = budgeter.step(now, BudgetEvent::Tick);
        let time = begun.elapsed();
        if !actions.is_empty() {
            times.push(time);
        }
        for action in actions {
            if let BudgetAction::Set { gpu, cap } = action {
                budgeter.step(now, BudgetEvent::Applied { gpu, cap });
            }
        }
    }
    times.sort();
    let median = times[times.len() / 2];
    assert!(median.as_secs_f64() < 0.01, "{median:?}");
}
