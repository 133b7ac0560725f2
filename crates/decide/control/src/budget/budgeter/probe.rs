//! Probes: a program gets more power for some seconds, so that its full throughput becomes known.

use super::{Budgeter, SMALLEST_CHANGE};
use crate::budget::gpu::GpuState;

/// How long a program gets more power to learn its full throughput, in seconds.
const PROBE_TIME: f64 = 4.5;
/// The most that probes take away from other GPUs, as a share of the budget.
const PROBE_SHARE: f64 = 0.2;
/// A probe that cannot have this share of the way to the highest cap is not made.
const SMALLEST_PROBE: f64 = 0.15;

/// A program that gets more power for some seconds, to learn its full throughput.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    /// The GPUs of the program, and the cap that each gets.
    pub(super) caps: Vec<(usize, f64)>,
    /// The time at which the probe ends, in seconds.
    pub(super) end: f64,
}

impl Budgeter {
    /// The next program whose full throughput is not known, if the others can do with less for some seconds.
    pub(super) fn next_probe(&self, now: f64) -> Option<Probe> {
        let is_unknown =
            |gpu: &GpuState| gpu.is_controlled() && gpu.is_busy && gpu.is_read && !gpu.was_probed;
        let first = self.gpus.iter().position(is_unknown)?;
        let is_member = |number: &usize| {
            let gpu = &self.gpus[*number];
            let of_job = gpu.program.is_some() && gpu.program == self.gpus[first].program;
            *number == first || (of_job && gpu.is_controlled())
        };
        let (members, others): (Vec<usize>, Vec<usize>) =
            (0..self.gpus.len()).partition(|number| is_member(number));
        let max = |number: usize| self.gpus[number].device.max_cap.get();
        let wanted = members
            .iter()
            .map(|one| (max(*one) - self.targets[*one]).max(0.0));
        let spare = |number: &usize| {
            let gpu = &self.gpus[*number];
            (self.targets[*number] - gpu.least(None)).max(0.0)
        };
        let wanted: f64 = wanted.sum();
        let spare: f64 = others.iter().map(spare).sum();
        let share = (PROBE_SHARE * self.budget).min(0.7 * spare) / wanted.max(1e-9);
        if share < SMALLEST_PROBE && wanted > SMALLEST_CHANGE {
            return None;
        }
        let cap = |number: &usize| {
            let target = self.targets[*number];
            (*number, target + share.min(1.0) * (max(*number) - target))
        };
        Some(Probe {
            caps: members.iter().map(cap).collect(),
            end: now + PROBE_TIME,
        })
    }
}
