//! Evaluates the strategy `guided`: `cargo run --release -p sweetspot-benchmarks --bin search [SEEDS]`.
//!
//! Searches the twelve fitted curves of power_capping_2022 and random workloads of the same form, with 1 % noise on time
//! and energy of every evaluation, and measures the time of a step. Then it searches all GPU profiles and compares the
//! expected with the actual regret.
//!
//! `--bin search table [SEEDS]` prints the table of docs/explanation/search.md instead: all strategies on the same
//! curves and on the measured ones of the Zeus project. `--bin search ceiling` prints what three evaluations can reach
//! on these.

mod all_gpus;
mod ceiling;
mod other_strategies;
mod table;

use std::time::Instant;

use anyhow::{Context, Result};
use sweetspot_benchmarks::OBJECTIVES;
use sweetspot_decide::search::{
    Evaluation, KnobKind, Noise, Proposal, SearchOptions, SearchSpace, StrategyName,
};
use sweetspot_decide::{Objective, Outcome};
use sweetspot_stats::Seed;

use sweetspot_benchmarks::curves::{Curve, published_curves, random_curve};

/// The relative noise of time and energy of an evaluation.
const NOISE: f64 = 0.01;

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
    let mut args = std::env::args().skip(1).peekable();
    if args.next_if(|arg| arg == "ceiling").is_some() {
        return ceiling::print();
    }
    let is_table = args.next_if(|arg| arg == "table").is_some();
    let seeds: u64 = match args.next() {
        Some(text) => text.parse().context("SEEDS must be a number")?,
        None => 20,
    };
    if is_table {
        return table::print(seeds);
    }
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
