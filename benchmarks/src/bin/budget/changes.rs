//! Scenarios in which the budget changes, and programs end and start.

use sweetspot_quantity::Watts;
use sweetspot_stats::Seed;
use sweetspot_virtual_time::budget::{BudgetChange, BudgetScenario};

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

/// Whether caps can keep the budget all the time: the least powers of the GPUs are never above it.
pub fn can_be_kept(scenario: &BudgetScenario, mix: &[MixGpu]) -> bool {
    let mut budget = scenario.budget.get();
    let mut is_running: Vec<bool> = mix.iter().map(|gpu| gpu.program.is_some()).collect();
    let least = |is_running: &[bool]| -> f64 {
        let pairs = mix.iter().zip(is_running);
        pairs.map(|(gpu, runs)| gpu.least_power(*runs)).sum()
    };
    let mut is_kept = least(&is_running) <= budget;
    for (_, change) in &scenario.changes {
        match change {
            BudgetChange::Budget(new) => budget = new.get(),
            BudgetChange::Program(gpu, program) => is_running[*gpu] = program.is_some(),
        }
        is_kept &= least(&is_running) <= budget;
    }
    is_kept
}
