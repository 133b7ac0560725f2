//! Sums over mean powers.

/// A mean power, when it begins, and the time in seconds by which it is weighted.
#[derive(Clone, Copy, Debug)]
pub struct CountedMean {
    pub from: f64,
    pub time: f64,
    pub power: f64,
    pub is_over_cap: bool,
}

/// What is counted about mean powers.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeanPowers {
    /// The time that they count for, in seconds.
    pub time: f64,
    /// The part of the time in which they were above the cap, in seconds.
    pub excess_time: f64,
    /// The sum of their products with their times, in joules.
    pub energy: f64,
    pub highest: Option<f64>,
}

impl MeanPowers {
    /// Counts a mean power.
    pub fn count(&mut self, mean: CountedMean) {
        self.time += mean.time;
        self.energy += mean.power * mean.time;
        if mean.is_over_cap {
            self.excess_time += mean.time;
        }
        let highest = self.highest;
        self.highest = Some(highest.map_or(mean.power, |highest| highest.max(mean.power)));
    }
}
