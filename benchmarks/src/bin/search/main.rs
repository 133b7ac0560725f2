//! Evaluates the strategy `guided`: `cargo run --release -p sweetspot-benchmarks --bin search [SEEDS]`.
//!
//! Searches the twelve fitted curves of power_capping_2022 and random workloads of the same form, with 1 % noise on time
//! and energy of every evaluation, and measures the time of a step. Then it searches all GPU profiles and compares the
//! expected with the actual regret.

mod all_gpus;

use std::time::Instant;

use anyhow::{Context, Result};
use sweetspot_benchmarks::OBJECTIVES;
use sweetspot_decide::search::{
    Evaluation, KnobKind, Noise, Proposal, SearchOptions, SearchSpace, StrategyName,
};
use sweetspot_decide::{Objective, Outcome};
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_stats::Seed;

const FITTED: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../data/published/power_capping_2022_fitted_curves.csv"
));
const NOISE: f64 = 0.01;

/// Time and energy of a job at every cap.
struct Curve {
    name: String,
    caps: Vec<f64>,
    points: Vec<Outcome>,
}

/// The model that was fitted to power_capping_2022: a job waits for the host, does work that does not depend on the core
/// clock, and work that does. Times are in seconds, powers in watts, clocks relative to the highest.
struct JobModel {
    host_power: f64,
    static_power: f64,
    /// The clock above which the voltage rises.
    voltage_knee: f64,
    voltage_slope: f64,
    host_time: f64,
    memory_time: f64,
    /// The time of the work that depends on the clock, at the highest clock.
    core_time: f64,
    uncapped_power: f64,
}

impl JobModel {
    fn outcome_at(&self, cap: f64) -> Outcome {
        let voltage = |clock: f64| 1.0 + self.voltage_slope * (clock - self.voltage_knee).max(0.0);
        let power = cap.min(self.uncapped_power);
        let share = (power - self.static_power) / (self.uncapped_power - self.static_power);
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            match middle * (voltage(middle) / voltage(1.0)).powi(2) < share {
                true => low = middle,
                false => high = middle,
            }
        }
        let clock = high.max(0.05);
        let busy = self.memory_time + self.core_time / clock;
        let energy = self.host_power * self.host_time + power * busy;
        Outcome::new(Seconds::new(self.host_time + busy), Joules::new(energy))
    }

    fn curve(&self, name: String, low: f64, high: f64, step: f64) -> Curve {
        let count = ((high - low) / step + 1e-9) as usize;
        let caps: Vec<f64> = (0..=count)
            .map(|number| low + step * number as f64)
            .collect();
        Curve {
            name,
            points: caps.iter().map(|cap| self.outcome_at(*cap)).collect(),
            caps,
        }
    }
}

fn published_curves() -> Result<Vec<Curve>> {
    let mut lines = FITTED.lines();
    let header: Vec<&str> = lines
        .next()
        .context("the file has no header")?
        .split(',')
        .collect();
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let cell = |name: &str| {
                let place = header.iter().position(|column| *column == name);
                place
                    .and_then(|place| cells.get(place).copied())
                    .context("a column is missing")
            };
            let number = |name: &str| -> Result<f64> { Ok(cell(name)?.parse()?) };
            let model = JobModel {
                host_power: number("P0")?,
                static_power: number("Ps")?,
                voltage_knee: number("ft")?,
                voltage_slope: number("v")?,
                host_time: number("t0")?,
                memory_time: number("tm")?,
                core_time: number("tc")?,
                uncapped_power: number("Pu")?,
            };
            let name = format!("{} {}", cell("gpu")?, cell("net")?);
            Ok(model.curve(name, number("cap_min")?, number("cap_max")?, 5.0))
        })
        .collect()
}

fn random_curve(number: u64) -> Curve {
    let seed = Seed::new(77).number(number);
    let within =
        |label: &str, low: f64, high: f64| low + (high - low) * seed.label(label).uniform();
    let high = within("high", 150.0, 700.0);
    let low = high * within("low", 0.3, 0.5);
    let full = high * within("full", 0.5, 1.2);
    let waiting = within("waiting", 0.0, 0.5);
    let bound = within("bound", 0.05, 0.95);
    let model = JobModel {
        host_power: full * within("waiting power", 0.1, 0.35),
        static_power: low * within("still", 0.3, 0.85),
        voltage_knee: within("knee", 0.6, 0.9),
        voltage_slope: within("rise", 0.0, 0.6),
        host_time: waiting,
        memory_time: (1.0 - waiting) * (1.0 - bound),
        core_time: (1.0 - waiting) * bound,
        uncapped_power: full,
    };
    let step = if high > 400.0 { 10.0 } else { 5.0 };
    model.curve(format!("random {number}"), low, high, step)
}

/// The results of many searches.
#[derive(Default)]
struct SearchStatistics {
    evaluations: Vec<usize>,
    regrets: Vec<f64>,
    /// The time of each step, in seconds.
    step_times: Vec<f64>,
}

/// The value of the objective at each point, and the best of them.
fn objective_values(
    points: &[Outcome],
    reference: &Outcome,
    objective: Objective,
) -> Result<(Vec<f64>, f64)> {
    let values = points.iter().map(|own| objective.value(own, reference));
    let values = values.collect::<Result<Vec<f64>, _>>()?;
    let best = values.iter().copied().fold(f64::INFINITY, f64::min);
    Ok((values, best))
}

impl SearchStatistics {
    fn search(
        &mut self,
        curve: &Curve,
        objective: Objective,
        seed: u64,
        max_evaluations: usize,
    ) -> Result<()> {
        let space = SearchSpace::of_one_knob(KnobKind::PowerCap, &curve.caps)?;
        let reference = curve.points.last().context("the curve has no points")?;
        let (values, best) = objective_values(&curve.points, reference, objective)?;
        let options = SearchOptions {
            seed,
            max_evaluations,
            ..SearchOptions::default()
        };
        let mut strategy = StrategyName::Guided.start(space, &objective.into(), options);
        let mut count = 0;
        loop {
            let begun = Instant::now();
            let ask = strategy.ask();
            self.step_times.push(begun.elapsed().as_secs_f64());
            let Proposal::Evaluate(place) = ask else {
                break;
            };
            let draw = Seed::new(seed)
                .label(&curve.name)
                .number(place as u64)
                .number(count);
            let noisy = |label: &str| 1.0 + NOISE * draw.label(label).normal();
            let mut outcome = curve.points[place].clone();
            outcome.time = outcome.time * noisy("time");
            outcome.energy = outcome.energy.map(|energy| energy * noisy("energy"));
            outcome.items = Some(1.0);
            strategy.tell(
                place,
                Evaluation::Measured {
                    outcome: Box::new(outcome),
                    noise: Some(Noise::equal(NOISE)),
                },
            );
            count += 1;
        }
        let chosen = strategy.recommend().context("no recommendation")?.point;
        self.evaluations.push(count as usize);
        self.regrets.push(values[chosen] / best - 1.0);
        Ok(())
    }

    fn print(&mut self, label: &str) {
        self.evaluations.sort_unstable();
        self.step_times.sort_by(f64::total_cmp);
        let count = self.regrets.len();
        let within = |limit: f64| {
            let good = self
                .regrets
                .iter()
                .filter(|regret| **regret <= limit)
                .count();
            100.0 * good as f64 / count as f64
        };
        println!(
            "{label:32} {count:5} searches: evaluations median {} max {}, within 1 % {:.2} %, within 2 % {:.2} %, mean regret {:.3} %, step time median {:.2} ms, 95 % {:.2} ms",
            self.evaluations[count / 2],
            self.evaluations[count - 1],
            within(0.01),
            within(0.02),
            100.0 * self.regrets.iter().sum::<f64>() / count as f64,
            1e3 * self.step_times[self.step_times.len() / 2],
            1e3 * self.step_times[self.step_times.len() * 95 / 100],
        );
    }
}

fn main() -> Result<()> {
    let seeds: u64 = match std::env::args().nth(1) {
        Some(text) => text.parse().context("SEEDS must be a number")?,
        None => 20,
    };
    let curves = published_curves()?;
    let mut all = SearchStatistics::default();
    for objective in OBJECTIVES {
        let mut own = SearchStatistics::default();
        for curve in &curves {
            for seed in 0..seeds {
                own.search(curve, objective, seed, usize::MAX)?;
            }
        }
        all.evaluations.extend(&own.evaluations);
        all.regrets.extend(&own.regrets);
        all.step_times.extend(&own.step_times);
        own.print(&format!("12 published, {objective}"));
    }
    all.print("12 published, all");
    let mut limited = SearchStatistics::default();
    for objective in OBJECTIVES {
        for number in 0..5 * seeds {
            limited.search(&random_curve(number), objective, number, 8)?;
        }
    }
    limited.print("random, at most 8 evaluations");
    all_gpus::search_all_gpus(seeds.div_ceil(5))
}
