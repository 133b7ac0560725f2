//! The measured values of a candidate setting, averaged over its measurement windows.

use super::window::WindowMeasurement;

/// The smallest relative change of power or throughput that counts as a change of the load.
const LOAD_CHANGE: f64 = 0.03;
/// A change of the load must also exceed this multiple of the usual scatter between measurement windows.
const LOAD_CHANGE_SCATTERS: f64 = 4.0;

/// The measured values of a candidate setting, averaged over its measurement windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// The highest mean power over the averaging time, in watts.
    pub power: f64,
    /// The mean power of the measurement windows, in watts.
    pub mean_power: f64,
    /// The throughput in items per second; the time spent waiting for items is excluded.
    pub rate: f64,
    /// The 99th percentile of the latency, in seconds.
    pub p99: f64,
    /// The number of consecutive measurement windows within the limits.
    pub good_windows: u32,
    /// Whether the last measurement window agrees with the earlier ones.
    pub consistency: Consistency,
    /// The mean relative deviation of single measurement windows from the running mean.
    scatter: f64,
    /// Whether the power was measured later than that of the other candidates, perhaps under another load.
    pub is_newer: bool,
}

/// How the last measurement window of a candidate relates to the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Consistency {
    /// The batches were not full; full batches have a higher throughput and draw more power.
    PartialBatches,
    /// The last measurement window agrees with the earlier ones.
    Consistent,
    /// The last measurement window differs much from the earlier ones, because the load changed or by chance.
    Deviating(LoadRatio),
}

/// The ratios of a measurement window's power and throughput to the stored values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadRatio {
    pub power: f64,
    pub rate: f64,
}

impl Measurement {
    /// Creates the measurement from the first complete measurement window.
    pub fn first(window: &WindowMeasurement) -> Self {
        Self {
            power: window.power,
            mean_power: window.mean_power,
            rate: window.rate,
            p99: window.p99,
            good_windows: 0,
            consistency: Consistency::Consistent,
            scatter: 0.0,
            is_newer: false,
        }
    }

    /// The ratios of a measurement window's power and throughput to the stored values.
    fn ratio_of(&self, window: &WindowMeasurement) -> LoadRatio {
        LoadRatio {
            power: ratio(window.mean_power, self.mean_power),
            rate: ratio(window.rate, self.rate),
        }
    }

    /// The ratios of a measurement window's power and throughput to the stored values; `None` if they agree within the
    /// usual scatter.
    pub fn deviation(&self, window: &WindowMeasurement) -> Option<LoadRatio> {
        let ratio = self.ratio_of(window);
        let threshold = LOAD_CHANGE.max(LOAD_CHANGE_SCATTERS * self.scatter);
        let differs = |ratio: f64| (ratio - 1.0).abs() > threshold;
        (differs(ratio.power) || differs(ratio.rate)).then_some(ratio)
    }

    /// Updates the running means of throughput and power with a measurement window, which gets this weight.
    pub fn blend(&mut self, window: &WindowMeasurement, weight: f64) {
        self.rate += weight * (window.rate - self.rate);
        self.mean_power += weight * (window.mean_power - self.mean_power);
        self.p99 = window.p99;
        self.consistency = Consistency::Consistent;
    }

    /// Updates the scatter with a measurement window that agrees with the earlier ones.
    pub fn update_scatter(&mut self, window: &WindowMeasurement) {
        // If the next window does not confirm a deviation, the deviation was chance.
        let seen = match self.consistency {
            Consistency::Deviating(ratio) => ratio,
            Consistency::Consistent | Consistency::PartialBatches => self.ratio_of(window),
        };
        let deviation = (seen.power - 1.0).abs().max((seen.rate - 1.0).abs());
        self.scatter += 0.2 * (deviation - self.scatter);
    }

    /// Scales power and throughput to a changed load.
    pub fn scale(&mut self, ratio: LoadRatio) {
        self.power *= ratio.power;
        self.mean_power *= ratio.power;
        self.rate *= ratio.rate;
        self.p99 /= ratio.rate;
    }
}

impl LoadRatio {
    /// Whether two measurement windows differ from the stored values in the same way.
    pub fn is_similar(self, other: Self) -> bool {
        let near = |one: f64, other: f64| {
            (one / other - 1.0).abs() <= 0.5 * (one - 1.0).abs().max(LOAD_CHANGE)
        };
        near(self.power, other.power) && near(self.rate, other.rate)
    }
}

/// The ratio of two positive values, clamped to a factor of 5; 1 if one of them is not positive.
pub fn ratio(new: f64, old: f64) -> f64 {
    match old > 0.0 && new > 0.0 {
        true => (new / old).clamp(0.2, 5.0),
        false => 1.0,
    }
}
