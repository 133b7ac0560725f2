//! Measures the rate of a program between its reports.

use sweetspot_quantity::Seconds;

/// The shortest time over which a rate is measured, in seconds.
const SHORTEST_WINDOW: f64 = 2.0;
/// Reports further apart than this are of a program that has paused, in seconds.
const LONGEST_GAP: f64 = 30.0;

/// A rate and how it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredRate {
    /// Items per second.
    pub rate: f64,
    /// How long it was measured, in seconds.
    pub time: f64,
}

/// Measures the rate of a program at one power cap.
#[derive(Clone, Debug, Default)]
pub struct RateMeter {
    /// Reports before this time belong to an earlier cap.
    valid_from: f64,
    first: Option<(f64, f64)>,
    last: Option<(f64, f64)>,
}

impl RateMeter {
    /// Starts again: reports before this time belong to an earlier cap.
    pub fn restart(&mut self, from: f64) {
        *self = Self {
            valid_from: from,
            ..Self::default()
        };
    }

    /// Takes a report, and returns the rate once the reports cover enough time.
    pub fn report(&mut self, at: Seconds, items: f64) -> Option<MeasuredRate> {
        let at = at.get();
        if at < self.valid_from || !items.is_finite() {
            return None;
        }
        let is_gap = self
            .last
            .is_some_and(|(last, done)| at - last > LONGEST_GAP || items < done);
        let Some((begin, before)) = self.first.filter(|_| !is_gap) else {
            self.first = Some((at, items));
            self.last = self.first;
            return None;
        };
        self.last = Some((at, items));
        let time = at - begin;
        if time < SHORTEST_WINDOW || items <= before {
            return None;
        }
        self.first = self.last;
        Some(MeasuredRate {
            rate: (items - before) / time,
            time,
        })
    }
}
