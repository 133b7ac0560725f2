//! Plans: divides the budget among the GPUs.

use sweetspot_quantity::Watts;

use super::{Budgeter, SMALLEST_CHANGE};
use crate::budget::divide::{Claim, divide, equal_shares};
use crate::budget::event::{BudgetAction, BudgetNotice};
use crate::budget::gpu::GpuState;

/// The time between two plans if nothing happens, in seconds.
const PLAN_INTERVAL: f64 = 1.0;
/// How long all GPUs get equal shares at the start, in seconds.
const EQUAL_SHARES_TIME: f64 = 5.5;
/// A plan is carried out if it brings this share more of the throughput of all GPUs than the present caps.
const WORTHWHILE_GAIN: f64 = 0.002;

impl Budgeter {
    /// Divides the budget anew.
    pub(super) fn plan(&mut self, now: f64, actions: &mut Vec<BudgetAction>) {
        self.next_plan = now + PLAN_INTERVAL;
        self.plans += 1;
        let is_urgent = std::mem::take(&mut self.is_urgent);
        if let Some(done) = self.probe.take_if(|probe| now >= probe.end) {
            for (number, cap) in done.caps {
                self.gpus[number].end_probe(now, cap);
            }
        }
        if self.probe.is_none() && !is_urgent && !self.is_measuring_equal_shares(now) {
            self.probe = self.next_probe(now);
        }
        let budget = self.budget * (1.0 - self.margin);
        let least = self.least_powers(GpuState::least);
        self.note_feasibility(least.iter().sum(), actions);
        let minima = self.minima(budget, least);
        let gpus = self.gpus.iter_mut().zip(&minima);
        let claims: Vec<Claim> = gpus.map(|(gpu, min)| gpu.claim(*min)).collect();
        let equal = equal_shares(budget, &claims);
        let mut powers = match self.is_measuring_equal_shares(now) {
            true => equal,
            false => {
                let powers = divide(budget, &claims);
                match value(&claims, &equal) > value(&claims, &powers) {
                    true => equal,
                    false => powers,
                }
            }
        };
        self.join_jobs(&mut powers);
        let is_new = self.probe.is_some() || is_urgent;
        if is_new || self.is_worthwhile(&claims, &powers, budget) {
            self.targets = powers;
        }
    }

    /// Whether all GPUs get equal shares to begin with, so that the throughput of programs with them is measured.
    pub(super) fn is_measuring_equal_shares(&self, now: f64) -> bool {
        now - self.began.unwrap_or(now) < EQUAL_SHARES_TIME
    }

    /// A least power of each GPU, with what a probe asks for.
    fn least_powers(&self, least: fn(&GpuState, Option<f64>) -> f64) -> Vec<f64> {
        let probed: &[(usize, f64)] = self.probe.as_ref().map_or(&[], |probe| &probe.caps);
        let gpus = self.gpus.iter().enumerate();
        let powers = gpus.map(|(number, gpu)| {
            let probe = probed.iter().find(|(probed, _)| *probed == number);
            least(gpu, probe.map(|(_, cap)| *cap))
        });
        powers.collect()
    }

    /// What each GPU gets at least: with a reserve for programs that may start and with caution about unknown throughput,
    /// as far as the budget allows.
    fn minima(&self, budget: f64, least: Vec<f64>) -> Vec<f64> {
        let reserved = self.least_powers(GpuState::reserved_least);
        let cautious = self.least_powers(GpuState::cautious_least);
        let both = reserved.iter().zip(&cautious).map(|(a, b)| a.max(*b));
        let both: Vec<f64> = both.collect();
        let fits = |powers: &Vec<f64>| powers.iter().sum::<f64>() <= budget;
        [both, reserved].into_iter().find(fits).unwrap_or(least)
    }

    /// Says once that the budget cannot be kept, and once that it can again.
    fn note_feasibility(&mut self, least: f64, actions: &mut Vec<BudgetAction>) {
        let is_infeasible = least > self.budget * 1.0001;
        if is_infeasible == self.is_infeasible {
            return;
        }
        self.is_infeasible = is_infeasible;
        let budget = Watts::new(self.budget);
        let floor = Watts::new(least);
        actions.push(BudgetAction::Notify(match is_infeasible {
            true => BudgetNotice::BelowFloor { budget, floor },
            false => BudgetNotice::Feasible { budget },
        }));
    }

    /// Gives like GPUs of one job the same cap: they wait for the slowest.
    fn join_jobs(&self, powers: &mut [f64]) {
        for number in 0..powers.len() {
            let gpu = &self.gpus[number];
            let Some(program) = gpu.program else { continue };
            let is_like = |other: &usize| {
                let other = &self.gpus[*other];
                other.program == Some(program)
                    && other.device.max_cap == gpu.device.max_cap
                    && other.is_controlled()
            };
            let members: Vec<usize> = (0..powers.len()).filter(is_like).collect();
            if members.len() > 1 && members[0] == number {
                let mean =
                    members.iter().map(|one| powers[*one]).sum::<f64>() / members.len() as f64;
                members.iter().for_each(|one| powers[*one] = mean);
            }
        }
    }

    /// Whether new caps bring enough more than the targets, or the targets exceed the budget.
    fn is_worthwhile(&self, claims: &[Claim], powers: &[f64], budget: f64) -> bool {
        let weight: f64 = claims.iter().map(|claim| claim.weight).sum();
        let sum: f64 = self.targets.iter().sum();
        let is_outside = claims
            .iter()
            .zip(&self.targets)
            .any(|(claim, target)| *target < claim.min - 0.5 || *target > claim.max + 0.5);
        is_outside
            || sum > budget + SMALLEST_CHANGE
            || value(claims, powers) > value(claims, &self.targets) + WORTHWHILE_GAIN * weight
    }
}

/// The sum of the weighted throughputs.
fn value(claims: &[Claim], powers: &[f64]) -> f64 {
    let pairs = claims.iter().zip(powers);
    pairs.map(|(claim, power)| claim.value(*power)).sum()
}
