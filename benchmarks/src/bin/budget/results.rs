//! The results of all cases.

use sweetspot_quantity::{Ratio, Watts};
use sweetspot_virtual_time::budget::{
    BudgetOutcome, BudgetPolicy, BudgetScenario, simulate_budget,
};

use crate::changes::{above_with_least_powers, with_changes};
use crate::mix::{CapPoint, MixGpu, STEP, jobs};
use crate::policies::{Counting, Shares, optimal_points, optimal_throughput};
use crate::{GPUS, HIGHEST_SHARE_ABOVE, TIME};

/// The budgets, between the sum of the lowest caps (0) and that of the default caps (1).
const BUDGETS: [f64; 3] = [0.25, 0.5, 0.75];

/// The result of one mix with one budget. Throughputs are those of the budgeter relative to another policy.
#[derive(Default)]
struct Case {
    name: String,
    own: f64,
    of_optimum: f64,
    of_power_optimum: f64,
    /// `None` if equal shares do not keep the budget.
    of_equal: Option<f64>,
    of_equal_handed_on: f64,
    of_proportional: f64,
    above: f64,
    /// The share of time above the budget with changes of budget and programs, and whether caps can keep it.
    above_with_changes: f64,
    can_be_kept: bool,
}

/// The results of all cases.
#[derive(Default)]
pub struct Results {
    cases: Vec<Case>,
}

impl Results {
    /// Runs all policies on a mix, with every budget.
    pub fn add(&mut self, number: u64, mix: &[MixGpu]) {
        let least: f64 = mix.iter().map(|gpu| gpu.caps.0).sum();
        let most: f64 = mix.iter().map(|gpu| gpu.caps.1).sum();
        for place in BUDGETS {
            let budget = ((least + place * (most - least)) / STEP).round() * STEP;
            let case = Case::run(number, mix, budget);
            if verbosity() >= 1 {
                case.print();
            }
            self.cases.push(case);
        }
    }

    /// Prints the summary.
    pub fn print(&self) {
        let all = |value: fn(&Case) -> f64| self.cases.iter().map(value).collect::<Vec<f64>>();
        for (name, values) in [
            ("of the optimum:          ", all(|case| case.of_optimum)),
            (
                "  counting powers alone: ",
                all(|case| case.of_power_optimum),
            ),
        ] {
            println!(
                "{name} mean {:.4}, worst {:.4}, {} of {} cases below 0.97",
                mean(&values),
                lowest(&values),
                below(&values, 0.97),
                values.len()
            );
        }
        let equal: Vec<f64> = self.cases.iter().filter_map(|case| case.of_equal).collect();
        for (name, values) in [
            ("of equal shares:         ", equal),
            (
                "  with watts handed on:  ",
                all(|case| case.of_equal_handed_on),
            ),
            (
                "of proportional ones:    ",
                all(|case| case.of_proportional),
            ),
        ] {
            println!(
                "{name} mean {:.4}, worst {:.4}, {} of {} cases below 1, {} below 0.999",
                mean(&values),
                lowest(&values),
                below(&values, 1.0),
                values.len(),
                below(&values, 0.999)
            );
        }
        let changed = |can_be_kept: bool| -> Vec<f64> {
            let cases = self.cases.iter();
            let cases = cases.filter(|case| case.can_be_kept == can_be_kept);
            cases.map(|case| case.above_with_changes).collect()
        };
        for (name, values) in [
            ("above the budget:        ", all(|case| case.above)),
            ("  with changes:          ", changed(true)),
            ("  that caps cannot keep: ", changed(false)),
        ] {
            println!(
                "{name} mean {:.4} %, worst {:.4} % of the time, {} of {} cases at least 0.5 %",
                100.0 * mean(&values),
                100.0 * values.iter().copied().fold(0.0, f64::max),
                values
                    .iter()
                    .filter(|one| **one >= HIGHEST_SHARE_ABOVE)
                    .count(),
                values.len()
            );
        }
    }
}

impl Case {
    /// Runs all policies.
    fn run(number: u64, mix: &[MixGpu], budget: f64) -> Self {
        let scenario = BudgetScenario {
            gpus: mix.iter().map(|gpu| gpu.gpu.clone()).collect(),
            budget: Watts::new(budget),
            jobs: jobs(mix),
            changes: Vec::new(),
            time: TIME,
            seed: number,
        };
        let full = full_items(mix);
        let run = |policy: &BudgetPolicy| {
            let outcome = simulate_budget(&scenario, policy);
            (outcome.normalised_throughput(&full), outcome)
        };
        let budgeter = BudgetPolicy::Budgeter(vec![(1.0, None); GPUS]);
        let (own, outcome) = run(&budgeter);
        let optimum = |counting| {
            let points = optimal_points(mix, budget, counting);
            let value = points
                .as_ref()
                .map_or(f64::INFINITY, |points| optimal_throughput(mix, points));
            (value, points)
        };
        let (best, points) = optimum(Counting::Caps);
        let even = [1.0; GPUS];
        let equal = Shares::clamped(mix, budget, &even);
        let of_equal = equal
            .keeps_budget
            .then(|| own / run(&equal.policy(budget)).0);
        let defaults: Vec<f64> = mix.iter().map(|gpu| gpu.caps.1).collect();
        let handed_on = |weights: &[f64]| {
            let shares = Shares::handed_on(mix, budget, weights);
            own / run(&shares.policy(budget)).0
        };
        let changing = with_changes(&scenario, mix, number);
        let changed = simulate_budget(&changing, &budgeter);
        if verbosity() >= 2 {
            print_gpus(mix, &outcome, &full, points.as_deref());
            print_excess(&changed);
        }
        Self {
            name: format!("mix {number}, {budget:.0} W"),
            own,
            of_optimum: own / best,
            of_power_optimum: own / optimum(Counting::Powers).0,
            of_equal,
            of_equal_handed_on: handed_on(&even),
            of_proportional: handed_on(&defaults),
            above: above(&outcome),
            above_with_changes: above(&changed),
            can_be_kept: above_with_least_powers(&changing, mix) < HIGHEST_SHARE_ABOVE,
        }
    }

    /// Prints the case in one line.
    fn print(&self) {
        let equal = self
            .of_equal
            .map_or_else(|| "none".to_owned(), |ratio| format!("x{ratio:.4}"));
        println!(
            "{}: {:.4}, {:.4} of the optimum ({:.4} by powers), {equal} of equal, x{:.4} handed on, x{:.4} of proportional, above {:.4}, with changes {:.4}{}",
            self.name,
            self.own,
            self.of_optimum,
            self.of_power_optimum,
            self.of_equal_handed_on,
            self.of_proportional,
            self.above,
            self.above_with_changes,
            if self.can_be_kept {
                ""
            } else {
                " (cannot be kept)"
            }
        );
    }
}

/// The items that each GPU with a program would have done at its default cap; 0 without a program.
fn full_items(mix: &[MixGpu]) -> Vec<f64> {
    let items = mix.iter().map(|gpu| match gpu.program {
        Some(_) => gpu.full * TIME.get(),
        None => 0.0,
    });
    items.collect()
}

/// Prints the mean caps and the throughput of every GPU beside those of the optimum.
fn print_gpus(mix: &[MixGpu], outcome: &BudgetOutcome, full: &[f64], points: Option<&[CapPoint]>) {
    for (number, gpu) in mix.iter().enumerate() {
        let caps = outcome
            .samples
            .iter()
            .map(|sample| sample.caps[number].get());
        let count = outcome.samples.len() as f64;
        let mean = caps.clone().sum::<f64>() / count;
        let last = caps.clone().next_back().unwrap_or(0.0);
        let share = outcome.items[number] / full[number].max(1e-9);
        let (lowest, best) = (gpu.table[0], points.map(|points| points[number]));
        println!(
            "  {number} {:24} {:14} caps {:.0}..{:.0}: mean {mean:.0}, last {last:.0}, throughput {share:.3}; best {}; lowest {:.3} at {:.0} W",
            gpu.name,
            gpu.network,
            gpu.caps.0,
            gpu.caps.1,
            best.map_or_else(String::new, |best| format!(
                "cap {:.0}, {:.3}, {:.0} W",
                best.cap, best.share, best.power
            )),
            lowest.share,
            lowest.power
        );
    }
    for (at, notice) in &outcome.notices {
        println!("  {:.1} s: {notice:?}", at.get());
    }
}

/// Prints the seconds in which the budget was exceeded although it had not changed, and the messages.
fn print_excess(outcome: &BudgetOutcome) {
    for sample in &outcome.samples {
        let (power, budget) = (sample.power.get(), sample.budget.get());
        if power > budget {
            let caps = sample.caps.iter().map(|cap| format!("{:.0}", cap.get()));
            let caps = caps.collect::<Vec<_>>().join(" ");
            println!(
                "  with changes, {:.0} s: {power:.0} W above {budget:.0} W, caps {caps}",
                sample.at.get()
            );
        }
    }
    for (at, notice) in &outcome.notices {
        println!("  with changes, {:.1} s: {notice:?}", at.get());
    }
}

/// The share of time above the budget.
fn above(outcome: &BudgetOutcome) -> f64 {
    outcome.statistics.above_share().map_or(0.0, Ratio::get)
}

/// How much is printed, from `VERBOSE`.
fn verbosity() -> u32 {
    let given = std::env::var("VERBOSE").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn lowest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn below(values: &[f64], limit: f64) -> usize {
    values.iter().filter(|one| **one < limit).count()
}
