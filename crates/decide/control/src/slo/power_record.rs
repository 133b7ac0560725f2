//! Whether the power of a server stayed below its bound.

use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use crate::hold::power_mean::PowerAverager;
use crate::hold::{CapOn, PowerReading};

/// The longest time from the start that counts as settling.
const LONGEST_SETTLING: Seconds = Seconds::new(10.0);
/// The shortest time after settling that is judged.
const SHORTEST: Seconds = Seconds::new(1.0);
/// The share of time for which a power that counts as kept may be above its bound.
const MAX_SHARE: Ratio = Ratio::new(0.01);

/// What became of a bound on power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerBoundResult {
    /// The bound.
    pub below: Watts,
    /// The mean power; `None` if no power was read.
    pub mean: Option<Watts>,
    /// The share of the time after settling in which the mean power of a second was above the bound; `None` if that time
    /// was too short.
    pub violation_share: Option<Ratio>,
}

impl PowerBoundResult {
    /// Whether the bound was kept; `None` if that is unknown.
    pub fn is_kept(&self) -> Option<bool> {
        self.violation_share.map(|share| share < MAX_SHARE)
    }
}

/// Compares power readings with a bound.
#[derive(Clone, Debug)]
pub struct PowerRecord {
    below: Watts,
    averager: PowerAverager,
    began: Option<Seconds>,
    has_settled: bool,
    energy: Joules,
    time: Seconds,
    judged: Seconds,
    above: Seconds,
}

impl PowerRecord {
    /// Creates a record without readings.
    pub fn new(below: Watts) -> Self {
        Self {
            below,
            averager: PowerAverager::new(CapOn::default()),
            began: None,
            has_settled: false,
            energy: Joules::ZERO,
            time: Seconds::ZERO,
            judged: Seconds::ZERO,
            above: Seconds::ZERO,
        }
    }

    /// Adds the power of a time.
    pub fn add(&mut self, from: Seconds, to: Seconds, power: Watts) {
        if to <= from || !power.get().is_finite() {
            return;
        }
        let began = *self.began.get_or_insert(from);
        self.energy += power * (to - from);
        self.time += to - from;
        let Some(mean) = self.averager.push(&PowerReading { from, to, power }) else {
            return;
        };
        let is_above = mean.average > self.below.get();
        self.has_settled |= !is_above || to - began > LONGEST_SETTLING;
        if self.has_settled {
            self.judged += to - from;
            if is_above {
                self.above += to - from;
            }
        }
    }

    /// What became of the bound so far.
    pub fn result(&self) -> PowerBoundResult {
        let mean = (self.time > Seconds::ZERO).then(|| self.energy / self.time);
        let is_known = self.judged >= SHORTEST;
        PowerBoundResult {
            below: self.below,
            mean,
            violation_share: is_known.then(|| self.above / self.judged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(powers: impl Iterator<Item = f64>) -> PowerBoundResult {
        let mut record = PowerRecord::new(Watts::new(300.0));
        for (number, power) in (0u32..).zip(powers) {
            let from = Seconds::new(0.05 * f64::from(number));
            record.add(from, from + Seconds::new(0.05), Watts::new(power));
        }
        record.result()
    }

    #[test]
    fn power_that_settles_below_the_bound_is_kept() {
        let settled = result((0..400).map(|n| if n < 60 { 400.0 } else { 290.0 }));
        assert_eq!(settled.is_kept(), Some(true), "{settled:?}");
    }

    #[test]
    fn power_that_never_settles_or_rises_again_is_not_kept() {
        let never = result((0..400).map(|_| 310.0));
        assert_eq!(never.is_kept(), Some(false), "{never:?}");
        let mean = never.mean.unwrap().get();
        assert!((mean - 310.0).abs() < 1e-6, "{mean}");
        let again = result((0..400).map(|n| if n > 300 { 350.0 } else { 290.0 }));
        assert!(again.violation_share.is_some_and(|share| share.get() > 0.1));
    }

    #[test]
    fn a_run_that_was_too_short_leaves_it_open() {
        assert_eq!(result((0..10).map(|_| 310.0)).is_kept(), None);
        assert_eq!(result([].into_iter()).mean, None);
    }
}
