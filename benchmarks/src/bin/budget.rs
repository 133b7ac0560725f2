//! Evaluates `budget`: `cargo run --release -p sweetspot-benchmarks --bin budget [FIRST [MIXES]]`.
//!
//! Random mixes of 8 GPUs and programs, three budgets each, for ten minutes of virtual time: the budgeter beside equal
//! shares, shares in proportion to the default caps, and the offline optimum, which knows the throughput of every program
//! at every cap (dynamic programming in steps of 5 W). FIRST is the number of the first mix, for mixes that nobody has
//! looked at. Then the same mixes with a budget that falls and rises and with programs that start and end, and the time
//! of a decision for 1,000 GPUs. `VERBOSE=1` shows every case.
//!
//! Every policy must keep the budget: where GPUs draw more than their caps, equal and proportional shares are reduced
//! until they do.

use std::time::Instant;

use anyhow::{Context, Result};
use sweetspot_control::budget::{
    BudgetAction, BudgetConfig, BudgetEvent, BudgetedDevice, Budgeter, GpuReading,
};
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{GpuProfile, Mode, Variant, gpus};
use sweetspot_stats::Seed;
use sweetspot_virtual_time::budget::{
    BudgetChange, BudgetPolicy, BudgetScenario, BudgetedGpu, SimulatedProgram, simulate_budget,
};

/// The number of GPUs of a mix.
const GPUS: usize = 8;
/// The length of a run.
const TIME: Seconds = Seconds::new(600.0);
/// The steps of the offline optimum, in watts.
const STEP: f64 = 5.0;
/// The budgets, between the sum of the lowest caps (0) and that of the default caps (1).
const BUDGETS: [f64; 3] = [0.25, 0.5, 0.75];
/// The share of GPUs without a program.
const IDLE_SHARE: f64 = 0.15;
/// The programs of the mixes; those that do not run on a GPU are drawn again.
const NETWORKS: [&str; 14] = [
    "alexnet",
    "caffenet",
    "vgg16",
    "vgg19",
    "googlenet",
    "inception_v3",
    "inception_v4",
    "resnet50",
    "resnet101",
    "resnet152",
    "mobilenet_v1",
    "mobilenet_v2",
    "xception",
    "nasnet_mobile",
];

/// A GPU of a mix, with its program and what that does at every cap.
struct MixGpu {
    gpu: BudgetedGpu,
    program: Option<SimulatedProgram>,
    /// The lowest and the default cap, in watts.
    caps: (f64, f64),
    /// Throughput relative to that at the default cap, and power, for every step from the lowest cap.
    table: Vec<(f64, f64)>,
    /// Items per second at the default cap.
    full: f64,
}

impl MixGpu {
    /// Draws a GPU and a program.
    fn draw(profiles: &[(String, GpuProfile)], seed: Seed) -> Self {
        let pick = |seed: Seed, count: usize| (seed.uniform() * count as f64) as usize;
        let profile = &profiles[pick(seed.label("gpu"), profiles.len())];
        let is_idle = seed.label("idle").uniform() < IDLE_SHARE;
        let mut program = None;
        let mut tries = 0;
        while program.is_none() && !is_idle {
            let draw = seed.label("network").number(tries);
            let mode = match draw.label("mode").uniform() < 0.5 {
                true => Mode::Train,
                false => Mode::Infer,
            };
            let variant = Variant {
                mode: Some(mode),
                ..Variant::default()
            };
            let network = NETWORKS[pick(draw, NETWORKS.len())];
            program = SimulatedProgram::new(profile, network, &variant, draw).ok();
            tries += 1;
        }
        let mut gpu = BudgetedGpu::from_profile(profile.1.clone());
        gpu.run(program.clone());
        let caps = (profile.1.cap.min.get(), profile.1.cap.default.get());
        let mut one = Self {
            gpu,
            program,
            caps,
            table: Vec::new(),
            full: 0.0,
        };
        one.full = one.measure(caps.1).0;
        let steps = ((caps.1 - caps.0) / STEP) as usize;
        let points = (0..=steps).map(|step| one.measure(caps.0 + step as f64 * STEP));
        let full = one.full.max(1e-9);
        one.table = points.map(|(rate, power)| (rate / full, power)).collect();
        one
    }

    /// Items per second and power after a while at a fixed cap.
    fn measure(&self, cap: f64) -> (f64, f64) {
        let mut gpu = self.gpu.clone();
        gpu.set_cap(Watts::new(cap));
        gpu.advance(Seconds::new(30.0));
        let (before, time) = (gpu.items(), Seconds::new(20.0));
        let power = gpu.advance(time).power;
        ((gpu.items() - before) / time.get(), power)
    }

    /// The power at a cap.
    fn power(&self, cap: f64) -> f64 {
        let step = (cap.clamp(self.caps.0, self.caps.1) - self.caps.0) / STEP;
        self.table[(step as usize).min(self.table.len() - 1)].1
    }
}

/// The highest sum of relative throughputs that a budget allows, if every GPU counts with its cap or, where it draws
/// more, with its power.
fn optimum(mix: &[MixGpu], budget: f64) -> f64 {
    let steps = (budget / STEP) as usize;
    let mut best = vec![0.0_f64; steps + 1];
    for gpu in mix {
        let mut next = vec![f64::NEG_INFINITY; steps + 1];
        for (step, (share, power)) in gpu.table.iter().enumerate() {
            let share = if gpu.program.is_some() { *share } else { 0.0 };
            let cap = gpu.caps.0 + step as f64 * STEP;
            let used = (cap.max(*power * 0.999) / STEP).ceil() as usize;
            for left in used..=steps {
                next[left] = next[left].max(best[left - used] + share);
            }
        }
        best = next;
    }
    best[steps]
}

/// Shares in proportion to `weights` that keep the budget: reduced where GPUs draw more than their caps.
fn shares(mix: &[MixGpu], budget: f64, weights: &[f64]) -> BudgetPolicy {
    let total: f64 = weights.iter().sum();
    let mut scale = 1.0;
    loop {
        let caps: Vec<f64> = weights.iter().map(|one| scale * one / total).collect();
        let powers = mix
            .iter()
            .zip(&caps)
            .map(|(gpu, cap)| gpu.power(cap * budget));
        let power: f64 = powers.sum();
        if power <= budget || scale < 0.1 {
            return BudgetPolicy::Shares(caps);
        }
        scale *= 0.98;
    }
}

/// The results of all cases.
#[derive(Default)]
struct Results {
    /// The budgeter's throughput relative to the optimum, to equal shares and to proportional shares.
    of_optimum: Vec<f64>,
    of_equal: Vec<f64>,
    of_proportional: Vec<f64>,
    above: Vec<f64>,
    /// The share of time above the budget with changes of budget and programs.
    above_with_changes: Vec<f64>,
}

impl Results {
    /// Runs all policies on a mix.
    fn add(&mut self, number: u64, mix: &[MixGpu]) {
        let least: f64 = mix.iter().map(|gpu| gpu.caps.0).sum();
        let most: f64 = mix.iter().map(|gpu| gpu.caps.1).sum();
        let full: Vec<f64> = mix.iter().map(|gpu| gpu.full * TIME.get()).collect();
        let full: Vec<f64> = full
            .iter()
            .zip(mix)
            .map(|(full, gpu)| if gpu.program.is_some() { *full } else { 0.0 })
            .collect();
        let programs = mix
            .iter()
            .filter(|gpu| gpu.program.is_some())
            .count()
            .max(1) as f64;
        for place in BUDGETS {
            let budget = ((least + place * (most - least)) / STEP).round() * STEP;
            let scenario = BudgetScenario {
                gpus: mix.iter().map(|gpu| gpu.gpu.clone()).collect(),
                budget: Watts::new(budget),
                changes: Vec::new(),
                time: TIME,
                seed: number,
            };
            let run = |policy: &BudgetPolicy| {
                let outcome = simulate_budget(&scenario, policy);
                (outcome.normalised_throughput(&full), outcome)
            };
            let defaults: Vec<f64> = mix.iter().map(|gpu| gpu.caps.1).collect();
            let budgeter = BudgetPolicy::Budgeter(vec![(1.0, None); GPUS]);
            let (own, outcome) = run(&budgeter);
            let (equal, _) = run(&shares(mix, budget, &[1.0; GPUS]));
            let (proportional, _) = run(&shares(mix, budget, &defaults));
            let best = optimum(mix, budget) / programs;
            let above = outcome.statistics.above_share().map_or(0.0, Ratio::get);
            self.of_optimum.push(own / best);
            self.of_equal.push(own / equal);
            self.of_proportional.push(own / proportional);
            self.above.push(above);
            let changed = simulate_budget(&with_changes(&scenario, mix, number), &budgeter);
            let above_with_changes = changed.statistics.above_share().map_or(0.0, Ratio::get);
            self.above_with_changes.push(above_with_changes);
            if std::env::var_os("VERBOSE").is_some() {
                println!(
                    "mix {number}, {budget:.0} W: {own:.4}, {:.4} of the optimum, x{:.4} of equal, x{:.4} of proportional, above {above:.4}, with changes {above_with_changes:.4}",
                    own / best,
                    own / equal,
                    own / proportional
                );
            }
        }
    }

    /// Prints the summary.
    fn print(&self) {
        let count = self.of_optimum.len() as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
        let lowest = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let below = |values: &[f64], limit: f64| values.iter().filter(|one| **one < limit).count();
        let over = |values: &[f64]| values.iter().filter(|one| **one >= 0.005).count();
        println!(
            "of the optimum:      mean {:.4}, worst {:.4}, {} of {count} cases below 0.97",
            mean(&self.of_optimum),
            lowest(&self.of_optimum),
            below(&self.of_optimum, 0.97)
        );
        for (name, values) in [
            ("of equal shares:    ", &self.of_equal),
            ("of proportional ones:", &self.of_proportional),
        ] {
            println!(
                "{name} mean {:.4}, worst {:.4}, {} of {count} cases below 1, {} below 0.999",
                mean(values),
                lowest(values),
                below(values, 1.0),
                below(values, 0.999)
            );
        }
        for (name, values) in [
            ("above the budget:    ", &self.above),
            ("  with changes:      ", &self.above_with_changes),
        ] {
            println!(
                "{name}mean {:.4} %, worst {:.4} % of the time, {} of {count} cases at least 0.5 %",
                100.0 * mean(values),
                100.0 * highest(values),
                over(values)
            );
        }
    }
}

/// The same scenario with a budget that is halved towards its floor and comes back, and programs that end and start.
fn with_changes(scenario: &BudgetScenario, mix: &[MixGpu], seed: u64) -> BudgetScenario {
    let least: f64 = mix.iter().map(|gpu| gpu.caps.0).sum();
    let lower = Watts::new((scenario.budget.get() + least) / 2.0);
    let at = |share: f64| TIME * share;
    let mut changes = vec![
        (at(0.3), BudgetChange::Budget(lower)),
        (at(0.6), BudgetChange::Budget(scenario.budget)),
    ];
    for (number, gpu) in mix.iter().enumerate() {
        let draw = Seed::new(seed).label("change").number(number as u64);
        let moment = 0.1 + 0.8 * draw.uniform();
        if let Some(program) = &gpu.program {
            changes.push((at(moment), BudgetChange::Program(number, None)));
            let again = BudgetChange::Program(number, Some(program.clone()));
            changes.push((at((moment + 0.05).min(0.95)), again));
        }
    }
    changes.sort_by(|a, b| a.0.get().total_cmp(&b.0.get()));
    BudgetScenario {
        changes,
        ..scenario.clone()
    }
}

/// The longest decision with 1,000 GPUs, in milliseconds.
fn longest_decision() -> Result<f64> {
    let count = 1000;
    let device = BudgetedDevice::new(Watts::new(100.0), Watts::new(300.0));
    let config = BudgetConfig {
        budget: Watts::new(200.0 * count as f64),
        gpus: vec![device; count],
    };
    let mut budgeter = Budgeter::new(&config)?;
    let mut longest = 0.0_f64;
    for tick in 0..300 {
        let now = Seconds::new(f64::from(tick) * 0.1);
        for gpu in 0..count {
            let cap = budgeter.cap(gpu).context("the GPU exists")?;
            let reading = GpuReading {
                power: cap * 0.99,
                limited: Some(Ratio::new(1.0)),
                is_busy: true,
            };
            budgeter.step(now, BudgetEvent::Read { gpu, reading });
            let items = now.get() * (10.0 + gpu as f64);
            let at = now;
            budgeter.step(now, BudgetEvent::Progress { gpu, at, items });
        }
        let begun = Instant::now();
        let actions = budgeter.step(now, BudgetEvent::Tick);
        longest = longest.max(begun.elapsed().as_secs_f64());
        for action in actions {
            if let BudgetAction::Set { gpu, cap } = action {
                budgeter.step(now, BudgetEvent::Applied { gpu, cap });
            }
        }
    }
    Ok(1e3 * longest)
}

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let first = numbers.next().transpose().context("FIRST is a number")?;
    let count = numbers.next().transpose().context("MIXES is a number")?;
    let (first, count) = (first.unwrap_or(1000), count.unwrap_or(50));
    let profiles = gpus()?;
    let mut results = Results::default();
    for number in first..first + count {
        let seed = Seed::new(number).label("mix");
        let mix = (0..GPUS as u64).map(|gpu| MixGpu::draw(&profiles, seed.number(gpu)));
        results.add(number, &mix.collect::<Vec<_>>());
    }
    results.print();
    println!(
        "1,000 GPUs: the longest decision took {:.2} ms",
        longest_decision()?
    );
    Ok(())
}
