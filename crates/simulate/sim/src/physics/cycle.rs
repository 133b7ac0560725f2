//! The same steps again and again.

use super::chip::State;

/// While a cycle is repeated the clock may move by this part of the default clock.
const CYCLE: f64 = 5e-4;

/// How the clock drifts while the same steps come again and again: by a little each time, and each time
/// by a certain part of the time before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycle {
    drift: f64,
    ratio: f64,
}

impl Cycle {
    /// From the states before, between and after two such rounds.
    pub fn new(before: &State, between: &State, after: &State) -> Self {
        let (first, second) = (
            between.clock().get() - before.clock().get(),
            after.clock().get() - between.clock().get(),
        );
        let ratio = if first == 0.0 { 0.0 } else { second / first };
        // A clock that swings about its place has arrived.
        Self {
            drift: if ratio < 0.0 { 0.0 } else { second },
            ratio: ratio.clamp(0.0, 1.0),
        }
    }

    /// Of the clock in so many more rounds: a geometric series.
    pub(super) fn movement(&self, times: u64) -> f64 {
        let rest = 1.0 - self.ratio;
        if rest < 1e-9 {
            self.drift * times as f64
        } else {
            self.drift * self.ratio * (1.0 - libm::pow(self.ratio, times as f64)) / rest
        }
    }

    /// Rounds in which the clock moves by a hair at most.
    pub(super) fn most(&self) -> f64 {
        let (drift, rest) = (self.drift.abs() * self.ratio, 1.0 - self.ratio);
        if drift <= CYCLE * rest {
            f64::INFINITY
        } else {
            CYCLE / drift
        }
    }
}
