//! Scenarios in which the budget changes, and programs end and start.

use sweetspot_quantity::{Ratio, Watts};
use sweetspot_stats::Seed;
use sweetspot_virtual_time::budget::{BudgetChange, BudgetPolicy, BudgetScenario, simulate_budget};

use crate::TIME;
use crate::mix::MixGpu;

/// The same scenario with a budget that is halved towards its floor and comes back, and programs that end and start.
pub fn with_changes(scenario: &BudgetScenario, mix: &[MixGpu], seed: u64) -> BudgetScenario {
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

/// The share of time above the budget if every GPU has, from start to end, the cap at which it draws least. No policy that
/// sets caps can do much better.
pub fn above_with_least_powers(scenario: &BudgetScenario, mix: &[MixGpu]) -> f64 {
    let caps = mix.iter().map(|gpu| Watts::new(gpu.least_cap())).collect();
    let outcome = simulate_budget(scenario, &BudgetPolicy::Fixed(caps));
    outcome.statistics.above_share().map_or(0.0, Ratio::get)
}
