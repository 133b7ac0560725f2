//! How `guided` fares: `cargo run --release -p sweetspot-benchmarks --bin search [SEEDS]`.
//!
//! On the twelve fitted curves of power_capping_2022 and on random workloads of the same form, with 1 % noise
//! on time and energy of every evaluation; how long a step takes; and on all GPU profiles, what is claimed beside what
//! is lost.

mod others;

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

/// Time and energy at every cap.
struct Curve {
    name: String,
    caps: Vec<f64>,
    points: Vec<Outcome>,
}

/// The physics that power_capping_2022 was fitted with: a waiting part, a part that does not depend on the clock and
/// one that does.
struct Physics {
    waiting_power: f64,
    still: f64,
    knee: f64,
    rise: f64,
    waiting: f64,
    fixed: f64,
    bound: f64,
    full: f64,
}

impl Physics {
    fn at(&self, cap: f64) -> Outcome {
        let voltage = |clock: f64| 1.0 + self.rise * (clock - self.knee).max(0.0);
        let power = cap.min(self.full);
        let share = (power - self.still) / (self.full - self.still);
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            match middle * (voltage(middle) / voltage(1.0)).powi(2) < share {
                true => low = middle,
                false => high = middle,
            }
        }
        let clock = high.max(0.05);
        let busy = self.fixed + self.bound / clock;
        let energy = self.waiting_power * self.waiting + power * busy;
        Outcome::new(Seconds::new(self.waiting + busy), Joules::new(energy))
    }

    fn curve(&self, name: String, low: f64, high: f64, step: f64) -> Curve {
        let count = ((high - low) / step + 1e-9) as usize;
        let caps: Vec<f64> = (0..=count)
            .map(|number| low + step * number as f64)
            .collect();
        Curve {
            name,
            points: caps.iter().map(|cap| self.at(*cap)).collect(),
            caps,
        }
    }
}

fn published() -> Result<Vec<Curve>> {
    let mut lines = FITTED.lines();
    let header: Vec<&str> = lines.next().context("a header")?.split(',').collect();
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let cell = |name: &str| {
                let place = header.iter().position(|column| *column == name);
                place
                    .and_then(|place| cells.get(place).copied())
                    .context("a column")
            };
            let number = |name: &str| -> Result<f64> { Ok(cell(name)?.parse()?) };
            let physics = Physics {
                waiting_power: number("P0")?,
                still: number("Ps")?,
                knee: number("ft")?,
                rise: number("v")?,
                waiting: number("t0")?,
                fixed: number("tm")?,
                bound: number("tc")?,
                full: number("Pu")?,
            };
            let name = format!("{} {}", cell("gpu")?, cell("net")?);
            Ok(physics.curve(name, number("cap_min")?, number("cap_max")?, 5.0))
        })
        .collect()
}

fn random(number: u64) -> Curve {
    let seed = Seed::new(77).number(number);
    let within =
        |label: &str, low: f64, high: f64| low + (high - low) * seed.label(label).uniform();
    let high = within("high", 150.0, 700.0);
    let low = high * within("low", 0.3, 0.5);
    let full = high * within("full", 0.5, 1.2);
    let waiting = within("waiting", 0.0, 0.5);
    let bound = within("bound", 0.05, 0.95);
    let physics = Physics {
        waiting_power: full * within("waiting power", 0.1, 0.35),
        still: low * within("still", 0.3, 0.85),
        knee: within("knee", 0.6, 0.9),
        rise: within("rise", 0.0, 0.6),
        waiting,
        fixed: (1.0 - waiting) * (1.0 - bound),
        bound: (1.0 - waiting) * bound,
        full,
    };
    let step = if high > 400.0 { 10.0 } else { 5.0 };
    physics.curve(format!("random {number}"), low, high, step)
}

#[derive(Default)]
struct Tally {
    evaluations: Vec<usize>,
    regrets: Vec<f64>,
    steps: Vec<f64>,
}

/// What each point is worth against the reference, and the best of them.
fn valued(
    points: &[Outcome],
    reference: &Outcome,
    objective: Objective,
) -> Result<(Vec<f64>, f64)> {
    let values = points.iter().map(|own| objective.value(own, reference));
    let values = values.collect::<Result<Vec<f64>, _>>()?;
    let best = values.iter().copied().fold(f64::INFINITY, f64::min);
    Ok((values, best))
}

impl Tally {
    fn add(&mut self, curve: &Curve, objective: Objective, seed: u64, most: usize) -> Result<()> {
        let space = SearchSpace::of_one_knob(KnobKind::PowerCap, &curve.caps)?;
        let reference = curve.points.last().context("a point")?;
        let (values, best) = valued(&curve.points, reference, objective)?;
        let terms = SearchOptions {
            seed,
            max_evaluations: most,
            ..SearchOptions::default()
        };
        let mut strategy = StrategyName::Guided.start(space, &objective.into(), terms);
        let mut count = 0;
        loop {
            let begun = Instant::now();
            let ask = strategy.ask();
            self.steps.push(begun.elapsed().as_secs_f64());
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
        let chosen = strategy.recommend().context("an answer")?.point;
        self.evaluations.push(count as usize);
        self.regrets.push(values[chosen] / best - 1.0);
        Ok(())
    }

    fn print(&mut self, label: &str) {
        self.evaluations.sort_unstable();
        self.steps.sort_by(f64::total_cmp);
        let count = self.regrets.len();
        let within = |most: f64| {
            let good = self
                .regrets
                .iter()
                .filter(|regret| **regret <= most)
                .count();
            100.0 * good as f64 / count as f64
        };
        println!(
            "{label:32} {count:5} searches: evaluations median {} most {}, within 1 % {:.2} %, within 2 % {:.2} %, mean regret {:.3} %, a step median {:.2} ms, 95 % {:.2} ms",
            self.evaluations[count / 2],
            self.evaluations[count - 1],
            within(0.01),
            within(0.02),
            100.0 * self.regrets.iter().sum::<f64>() / count as f64,
            1e3 * self.steps[self.steps.len() / 2],
            1e3 * self.steps[self.steps.len() * 95 / 100],
        );
    }
}

fn main() -> Result<()> {
    let seeds: u64 = match std::env::args().nth(1) {
        Some(text) => text.parse().context("a number of seeds")?,
        None => 20,
    };
    let curves = published()?;
    let mut all = Tally::default();
    for objective in OBJECTIVES {
        let mut own = Tally::default();
        for curve in &curves {
            for seed in 0..seeds {
                own.add(curve, objective, seed, usize::MAX)?;
            }
        }
        all.evaluations.extend(&own.evaluations);
        all.regrets.extend(&own.regrets);
        all.steps.extend(&own.steps);
        own.print(&format!("12 published, {objective}"));
    }
    all.print("12 published, all");
    let mut limited = Tally::default();
    for objective in OBJECTIVES {
        for number in 0..5 * seeds {
            limited.add(&random(number), objective, number, 8)?;
        }
    }
    limited.print("random, 8 evaluations at most");
    others::print(seeds.div_ceil(5))
}
