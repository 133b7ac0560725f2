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
/// The shortest time between two messages about whether the budget can be kept, in seconds, unless the budget changes:
/// what GPUs draw whose cap cannot be set fluctuates.
const FEASIBILITY_INTERVAL: f64 = 30.0;

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
        self.note_feasibility(now, least.iter().sum(), actions);
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
        for members in self.jobs() {
            join_job(&members, &minima, &mut powers);
        }
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
    fn note_feasibility(&mut self, now: f64, least: f64, actions: &mut Vec<BudgetAction>) {
        let is_infeasible = least > self.budget * 1.0001;
        let is_soon = now - self.feasibility_noted < FEASIBILITY_INTERVAL;
        if is_infeasible == self.is_infeasible || is_soon {
            return;
        }
        self.is_infeasible = is_infeasible;
        self.feasibility_noted = now;
        let budget = Watts::new(self.budget);
        let uncapped = self.gpus.iter().filter(|gpu| !gpu.is_controlled());
        let uncapped = uncapped.map(|gpu| gpu.least(None)).sum();
        let has_floor = |gpu: &GpuState| gpu.device.lowest_cap() > gpu.device.min_cap.get();
        actions.push(BudgetAction::Notify(match is_infeasible {
            true => BudgetNotice::BelowFloor {
                budget,
                floor: Watts::new(least),
                uncapped: Watts::new(uncapped),
                has_floors: self.gpus.iter().any(has_floor),
            },
            false => BudgetNotice::Feasible { budget },
        }));
    }

    /// The like GPUs of each job, which get the same cap: they wait for the slowest.
    fn jobs(&self) -> Vec<Vec<usize>> {
        let mut jobs = Vec::new();
        for (number, gpu) in self.gpus.iter().enumerate() {
            let Some(program) = gpu.program else { continue };
            let is_like = |other: &usize| {
                let other = &self.gpus[*other];
                other.program == Some(program)
                    && other.device.max_cap == gpu.device.max_cap
                    && other.is_controlled()
            };
            let members: Vec<usize> = (0..self.gpus.len()).filter(is_like).collect();
            if members.len() > 1 && members[0] == number {
                jobs.push(members);
            }
        }
        jobs
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

/// Gives the GPUs of a job the same power, without a change of their sum. Those that must have more get what they must
/// have, and the others share the rest.
fn join_job(members: &[usize], minima: &[f64], powers: &mut [f64]) {
    let mut left: f64 = members.iter().map(|one| powers[*one]).sum();
    let mut open: Vec<usize> = members.to_vec();
    open.sort_by(|a, b| minima[*b].total_cmp(&minima[*a]));
    while let Some(first) = open.first().copied()
        && minima[first] > left / open.len() as f64
    {
        powers[first] = powers[first].min(minima[first]);
        left -= powers[first];
        open.remove(0);
    }
    let share = left / open.len().max(1) as f64;
    open.iter().for_each(|one| powers[*one] = share);
}

#[cfg(test)]
mod tests {
    use super::join_job;

    #[test]
    fn the_gpus_of_a_job_share_evenly_except_for_what_each_must_have() {
        // GPU 0 belongs to another job.
        for (minima, powers, expected) in [
            ([100.0; 3], [260.0, 150.0, 190.0], [200.0; 3]),
            (
                [250.0, 100.0, 100.0],
                [260.0, 150.0, 190.0],
                [250.0, 175.0, 175.0],
            ),
            (
                [100.0, 260.0, 190.0],
                [150.0, 260.0, 190.0],
                [150.0, 260.0, 190.0],
            ),
        ] {
            let minima = [&[120.0][..], &minima].concat();
            let mut powers = [&[120.0][..], &powers].concat();
            join_job(&[1, 2, 3], &minima, &mut powers);
            assert_eq!(powers[0], 120.0);
            assert_eq!(powers[1..], expected, "{minima:?}");
        }
    }
}
