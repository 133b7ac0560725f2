//! How long a sweep will still take, estimated from its first run.

use std::time::Duration;

use sweetspot_quantity::Seconds;
use sweetspot_study::{Outline, Point};

/// How long the rest of a sweep takes if every run takes as long as the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeLeft {
    /// The number of runs that follow.
    pub runs: usize,
    /// Whether `runs` is only known to be the maximum.
    pub is_maximum: bool,
    /// The time of one run.
    pub each: Seconds,
    /// The time of all runs that follow, with the waits between them and the runs that warm up.
    pub total: Seconds,
}

impl TimeLeft {
    /// Estimates the time that is left if every run takes the time `each`, from the start of the command to its exit.
    pub fn estimate(
        outline: &Outline,
        points: &[Point],
        each: Seconds,
        settle: Duration,
        warmup: u32,
    ) -> Self {
        let plan = &outline.plan;
        let done: usize = points.iter().map(|point| point.runs.len()).sum();
        let expected = plan.expected_runs(points, outline.subject.energy_of);
        let runs = expected.unwrap_or_else(|| plan.max_runs().saturating_sub(done));
        let not_run = points.iter().filter(|point| point.runs.is_empty()).count();
        let warmups = runs.min(not_run) * warmup as usize;
        let waits = Seconds::new(settle.as_secs_f64()) * runs as f64;
        Self {
            runs,
            is_maximum: expected.is_none(),
            each,
            total: each * (runs + warmups) as f64 + waits,
        }
    }
}
