//! Plans: divides the budget among the GPUs.

use sweetspot_quantity::Watts;

use super::{Budgeter, SMALLEST_CHANGE};
use crate::budget::divide::{Claim, divide};
use crate::budget::event::{BudgetAction, BudgetNotice};
use crate::budget::gpu::GpuState;

/// The time between two plans if nothing happens, in seconds.
const PLAN_INTERVAL: f64 = 1.0;
/// A plan is carried out if it brings this share more of the throughput of all GPUs than the present caps.
const WORTHWHILE_GAIN: f64 = 0.002;

impl Budgeter {
    /// Divides the budget anew.
    pub(super) fn plan(&mut self, now: f64, actions: &mut Vec<BudgetAction>) {
        self.next_plan = now + PLAN_INTERVAL;
        self.plans += 1;
        let is_urgent = std::mem::take(&mut self.is_urgent);
        if let Some(done) = self.probe.take_if(|probe| now >= probe.end) {
            for (number, _) in done.caps {
                self.gpus[number].was_probed = true;
            }
        }
        if self.probe.is_none() && !is_urgent {
            self.probe = self.next_probe(now);
        }
        let budget = self.budget * (1.0 - self.margin);
        let mut claims = self.claims();
        let least: f64 = claims.iter().map(|claim| claim.min).sum();
        self.note_feasibility(least, actions);
        self.be_cautious(budget, &mut claims);
        let mut powers = divide(budget, &claims);
        self.join_jobs(&mut powers);
        let is_new = self.probe.is_some() || is_urgent;
        if is_new || self.is_worthwhile(&claims, &powers, budget) {
            self.targets = powers;
        }
    }

    /// What each GPU may get.
    fn claims(&mut self) -> Vec<Claim> {
        let probed: &[(usize, f64)] = self.probe.as_ref().map_or(&[], |probe| &probe.caps);
        let probe_of = |gpu| {
            let mut probed = probed.iter();
            probed.find(|(number, _)| *number == gpu).map(|one| one.1)
        };
        let gpus = self.gpus.iter_mut().enumerate();
        gpus.map(|(number, gpu)| gpu.claim(probe_of(number)))
            .collect()
    }

    /// Keeps caps from falling far below what was measured, if the budget allows that.
    fn be_cautious(&self, budget: f64, claims: &mut [Claim]) {
        let cautious = |claim: &Claim, gpu: &GpuState| match claim.weight > 0.0 {
            true => gpu.cautious_min().clamp(claim.min, claim.useful),
            false => claim.min,
        };
        let pairs = claims.iter().zip(&self.gpus);
        let sum: f64 = pairs.map(|(claim, gpu)| cautious(claim, gpu)).sum();
        if sum <= budget {
            for (claim, gpu) in claims.iter_mut().zip(&self.gpus) {
                claim.min = cautious(claim, gpu);
            }
        }
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
        let value = |powers: &[f64]| -> f64 {
            let parts = claims.iter().zip(powers);
            parts
                .map(|(claim, power)| claim.weight * claim.shape.share(*power))
                .sum()
        };
        let weight: f64 = claims.iter().map(|claim| claim.weight).sum();
        let sum: f64 = self.targets.iter().sum();
        let is_outside = claims
            .iter()
            .zip(&self.targets)
            .any(|(claim, target)| *target < claim.min - 0.5 || *target > claim.max + 0.5);
        is_outside
            || sum > budget + SMALLEST_CHANGE
            || value(powers) > value(&self.targets) + WORTHWHILE_GAIN * weight
    }
}
