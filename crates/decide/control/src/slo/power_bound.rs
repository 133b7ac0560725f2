//! Keeps the mean power of a server below a bound.

use sweetspot_quantity::{Ratio, Seconds, Watts};

/// The time over which power is averaged.
const AVERAGING: Seconds = Seconds::new(1.0);
/// A clock that exceeded the bound is not tried again for this time; it doubles each time.
const BLOCK: Seconds = Seconds::new(20.0);
const MAX_BLOCK: Seconds = Seconds::new(600.0);
/// The clock is raised only if the power is below this share of the bound.
const POWER_MARGIN: f64 = 0.95;
/// How long power is above the bound at the lowest clock before the user is warned.
const PATIENCE: Seconds = Seconds::new(3.0);

/// The highest clock that keeps the mean power below a bound.
#[derive(Clone, Debug)]
pub(super) struct PowerBound {
    below: Watts,
    /// The highest allowed clock, as an index.
    level: usize,
    mean: Option<Watts>,
    /// When the clock that applies was set.
    since: Seconds,
    /// The lowest clock that exceeded the bound, and until when it is not tried again.
    exceeded: Option<(usize, Seconds)>,
    block: Seconds,
    /// How often the clock was lowered without reaching the bound.
    falls: i32,
    /// Since when the bound is exceeded at the lowest clock.
    lowest_since: Option<Seconds>,
}

impl PowerBound {
    /// Creates a bound that allows all clocks at first.
    pub fn new(below: Watts, top: usize) -> Self {
        Self {
            below,
            level: top,
            mean: None,
            since: Seconds::ZERO,
            exceeded: None,
            block: BLOCK,
            falls: 0,
            lowest_since: None,
        }
    }

    /// The highest clock that is allowed, as an index.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Whether the bound has been exceeded at the lowest clock for some time.
    pub fn cannot_be_kept(&self, now: Seconds) -> bool {
        self.lowest_since
            .is_some_and(|since| now - since > PATIENCE)
    }

    /// Takes the mean power since the last page, while the clock `current` was set. `shares` are the clocks relative to the
    /// highest one.
    pub fn take(
        &mut self,
        now: Seconds,
        interval: Seconds,
        power: Watts,
        current: usize,
        shares: &[Ratio],
    ) {
        let before = self.mean.unwrap_or(power);
        let weight = 1.0 - (-(interval / AVERAGING).get()).exp();
        let mean = before + (power - before) * weight;
        self.mean = Some(mean);
        let is_above = mean > self.below && power > self.below;
        self.lowest_since = match is_above && current == 0 {
            true => self.lowest_since.or(Some(now)),
            false => None,
        };
        // The mean follows a change only after a while.
        if now - self.since < AVERAGING {
            return;
        }
        let top = shares.len().saturating_sub(1);
        if is_above && current > 0 {
            // Power without work does not fall with the clock, so each further step is larger.
            let factor = (self.below / mean).get().powi(1 << self.falls.min(4));
            self.falls += 1;
            let wanted = shares[current.min(top)] * factor;
            let level = shares.partition_point(|share| *share < wanted);
            if self.exceeded.is_some_and(|(level, _)| current >= level) {
                self.block = (self.block * 2.0).min(MAX_BLOCK);
            }
            self.exceeded = Some((current, now + self.block));
            self.set(level.min(current - 1), now);
            return;
        }
        if !is_above {
            self.falls = 0;
        }
        if mean < self.below * POWER_MARGIN && current >= self.level && self.level < top {
            let is_blocked = self
                .exceeded
                .is_some_and(|(level, until)| self.level + 1 >= level && now < until);
            if !is_blocked {
                self.set(self.level + 1, now);
            }
        }
    }

    fn set(&mut self, level: usize, now: Seconds) {
        self.level = level;
        self.since = now;
        self.mean = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs for so many pages against a GPU of this power at the highest clock and 100 W without work; returns the number
    /// of changes and the share of the last half in which the power was above the bound.
    fn run(below: f64, highest: f64, pages: u32) -> (u32, f64, PowerBound) {
        let shares: Vec<Ratio> = (4..=20).map(|n| Ratio::new(f64::from(n) / 20.0)).collect();
        let mut bound = PowerBound::new(Watts::new(below), shares.len() - 1);
        let (mut changes, mut above) = (0, 0);
        for page in 0..pages {
            let level = bound.level();
            let noise = 1.0 + 0.03 * (f64::from(page % 7) - 3.0) / 3.0;
            let power = 100.0 + (highest - 100.0) * shares[level].get().powi(2) * noise;
            let now = Seconds::new(0.2 * f64::from(page));
            bound.take(now, Seconds::new(0.2), Watts::new(power), level, &shares);
            changes += u32::from(bound.level() != level);
            above += u32::from(page > pages / 2 && power > 1.02 * below);
        }
        (changes, f64::from(above) / f64::from(pages / 2), bound)
    }

    #[test]
    fn power_is_kept_without_a_cycle() {
        let (changes, above, bound) = run(400.0, 700.0, 3000);
        assert!(changes <= 20, "{changes} changes in ten minutes");
        assert!(above < 0.05, "{above}");
        assert!((9..=12).contains(&bound.level()), "{}", bound.level());
        assert!(!bound.cannot_be_kept(Seconds::new(600.0)));
    }

    #[test]
    fn a_bound_below_the_power_at_the_lowest_clock_is_found() {
        let (changes, _, bound) = run(90.0, 120.0, 100);
        assert_eq!(bound.level(), 0);
        assert!(changes <= 5, "{changes}");
        assert!(bound.cannot_be_kept(Seconds::new(20.0)));
    }
}
