//! The drift of the core clock while a workload iteration is repeated.

use super::state::State;

/// A repeated workload iteration is computed anew once the core clock has drifted by more than this, relative
/// to the default clock.
const MAX_CLOCK_DRIFT: f64 = 5e-4;

/// The drift of the core clock while the same workload iteration is repeated. Each repetition changes the clock by
/// `ratio` times the change of the repetition before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycle {
    drift: f64,
    ratio: f64,
}

impl Cycle {
    /// Computes the drift from the GPU's states before, between and after two repetitions of an iteration.
    pub fn new(before: &State, between: &State, after: &State) -> Self {
        let (first, second) = (
            between.clock().get() - before.clock().get(),
            after.clock().get() - between.clock().get(),
        );
        let ratio = if first == 0.0 { 0.0 } else { second / first };
        // A clock that oscillates around its target has settled.
        Self {
            drift: if ratio < 0.0 { 0.0 } else { second },
            ratio: ratio.clamp(0.0, 1.0),
        }
    }

    /// The change of the clock in `times` more repetitions: the sum of a geometric series.
    pub(super) fn movement(&self, times: u64) -> f64 {
        let rest = 1.0 - self.ratio;
        if rest < 1e-9 {
            self.drift * times as f64
        } else {
            self.drift * self.ratio * (1.0 - libm::pow(self.ratio, times as f64)) / rest
        }
    }

    /// The number of repetitions in which the clock changes by at most [`MAX_CLOCK_DRIFT`].
    pub(super) fn max_repeats(&self) -> f64 {
        let (drift, rest) = (self.drift.abs() * self.ratio, 1.0 - self.ratio);
        if drift <= MAX_CLOCK_DRIFT * rest {
            f64::INFINITY
        } else {
            MAX_CLOCK_DRIFT / drift
        }
    }
}
