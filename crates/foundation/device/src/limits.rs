//! Readings that tell what limits a device: for how long it was throttled, and how much of its units is used.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Ratio, Seconds};

/// The total times, since an arbitrary origin, for which a device ran slower than it could, by reason. A time is absent
/// if the device cannot report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThrottleTimes {
    /// The time for which the power cap limited the clock.
    pub power_cap: Option<Seconds>,
    /// The time for which the temperature limited the clock.
    pub thermal: Option<Seconds>,
    /// The time for which the server's power supply limited the clock.
    pub power_brake: Option<Seconds>,
}

impl ThrottleTimes {
    /// The times from `earlier` to these. A counter that is missing in one of them, or that went back, is absent.
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = |now: Option<Seconds>, before: Option<Seconds>| {
            let passed = now? - before?;
            (passed >= Seconds::ZERO).then_some(passed)
        };
        Self {
            power_cap: difference(self.power_cap, earlier.power_cap),
            thermal: difference(self.thermal, earlier.thermal),
            power_brake: difference(self.power_brake, earlier.power_brake),
        }
    }
}

/// The mean use of a device's units over a time. A value is absent if the device cannot report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnitUse {
    /// The share of the cores (NVIDIA's streaming multiprocessors) that had work, averaged over the time.
    pub cores: Option<Ratio>,
    /// The share of the time in which the tensor units worked, averaged over the cores.
    pub tensor: Option<Ratio>,
    /// The share of the memory's bandwidth that was used.
    pub memory: Option<Ratio>,
}

/// The answer to a request for the use of a device's units, which is a mean since the request before.
#[derive(Clone, Debug, PartialEq)]
pub enum UnitUseReading {
    /// The device cannot report the use of its units.
    Unsupported,
    /// The use could not be read this time, for this reason; another program may use the device's monitors.
    Failed(String),
    /// This is the first request: the next one returns the use since now.
    Started,
    /// The mean use since the request before.
    Mean(UnitUse),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_counters_are_unknown_if_one_is_missing_or_went_back() {
        let times = |cap: Option<f64>, thermal: Option<f64>| ThrottleTimes {
            power_cap: cap.map(Seconds::new),
            thermal: thermal.map(Seconds::new),
            power_brake: None,
        };
        let earlier = times(Some(5.0), Some(1.0));
        assert_eq!(
            times(Some(7.5), Some(1.0)).since(&earlier),
            times(Some(2.5), Some(0.0))
        );
        // The driver was loaded anew, and its counters began at zero.
        assert_eq!(
            times(Some(0.1), Some(2.0)).since(&earlier),
            times(None, Some(1.0))
        );
        assert_eq!(times(None, None).since(&earlier), times(None, None));
        let not_a_number = times(Some(f64::NAN), None).since(&earlier);
        assert_eq!(not_a_number.power_cap, None);
    }
}
