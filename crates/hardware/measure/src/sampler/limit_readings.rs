//! Readings of what limits a device, at the begin and end of a measurement window.

use sweetspot_device::{Device, Moment, ThrottleTimes, UnitUse, UnitUseReading};
use sweetspot_quantity::{Ratio, Seconds, Watts};

use crate::math::Span;

/// A reading counts for the end of a window if it was made within this share of the window's length from it.
const MAX_DISTANCE_SHARE: f64 = 0.1;

/// In a shorter window the throttled time is unknown: the counters of an H200 lag by up to 0.5 s, so they also count the
/// load before.
const MIN_THROTTLE_WINDOW: Seconds = Seconds::new(2.5);

/// The counters of what limits a device at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitReadings {
    /// The moment at which the counters were read.
    pub at: Moment,
    /// For how long the device was throttled until then.
    pub throttled: ThrottleTimes,
    /// The use of the device's units since the readings before.
    pub units: UnitUseReading,
    /// The power cap that the device enforced; `None` if it is unknown.
    pub power_cap: Option<Watts>,
}

impl LimitReadings {
    /// Reads the counters. `at` is stored as the time of the readings.
    pub fn read(device: &mut dyn Device, at: Moment) -> Self {
        Self {
            at,
            throttled: device.throttle_times(),
            units: device.unit_use(),
            power_cap: device.power_limits().ok().map(|limits| limits.enforced),
        }
    }
}

/// What the counters say about a measurement window. A value is absent if it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindowLimits {
    /// The share of the time in which the power cap throttled the device.
    pub throttled_by_cap: Option<Ratio>,
    /// The share of the time in which the temperature throttled the device.
    pub throttled_by_heat: Option<Ratio>,
    /// The share of the time in which the server's power supply throttled the device.
    pub throttled_by_brake: Option<Ratio>,
    /// The mean use of the device's units.
    pub units: UnitUse,
    /// The power cap that the device enforced, if it was the same at the begin and at the end.
    pub power_cap: Option<Watts>,
}

impl WindowLimits {
    /// Compares the readings nearest to the begin and the end of a window; everything is unknown if there are none
    /// near it.
    pub fn of(readings: &[LimitReadings], window: &Span) -> Self {
        let nearest = |moment: Moment| {
            let distance = |index: &usize| readings[*index].at.nanos().abs_diff(moment.nanos());
            let index = (0..readings.len()).min_by_key(distance)?;
            let limit = MAX_DISTANCE_SHARE * window.length().get() * 1e9;
            (distance(&index) as f64 <= limit).then_some(index)
        };
        let (Some(first), Some(last)) = (nearest(window.begin), nearest(window.end)) else {
            return Self::default();
        };
        if first >= last {
            return Self::default();
        }
        let counters = Self::over(&readings[first..=last]);
        if readings[last].at - readings[first].at >= MIN_THROTTLE_WINDOW {
            return counters;
        }
        Self {
            throttled_by_cap: None,
            throttled_by_heat: None,
            throttled_by_brake: None,
            ..counters
        }
    }

    /// Compares the first and the last of these readings. The counters lag, so that throttled times over less than some
    /// seconds also belong to the load before.
    pub fn over(readings: &[LimitReadings]) -> Self {
        let [begin, .., end] = readings else {
            return Self::default();
        };
        let time = end.at - begin.at;
        Self {
            throttled_by_cap: throttled_share(readings, |times| times.power_cap, time),
            throttled_by_heat: throttled_share(readings, |times| times.thermal, time),
            throttled_by_brake: throttled_share(readings, |times| times.power_brake, time),
            units: mean_use(readings),
            power_cap: begin.power_cap.filter(|cap| end.power_cap == Some(*cap)),
        }
    }
}

/// The share of the time for which a device was throttled for one reason. It is unknown if the counter is missing in one
/// of the readings or went back from one to the next: it may have counted anything before.
fn throttled_share(
    readings: &[LimitReadings],
    counter: fn(&ThrottleTimes) -> Option<Seconds>,
    time: Seconds,
) -> Option<Ratio> {
    let steps = readings.windows(2);
    let steps = steps.map(|pair| counter(&pair[1].throttled.since(&pair[0].throttled)));
    let throttled = steps.sum::<Option<Seconds>>()?;
    (time > Seconds::ZERO).then(|| throttled / time)
}

/// The mean use of the units from the first of these readings to the last, weighted by time; a use that is missing in
/// one of them is unknown.
fn mean_use(readings: &[LimitReadings]) -> UnitUse {
    let mean = |unit: fn(&UnitUse) -> Option<Ratio>| {
        let (mut used, mut time) = (0.0, 0.0);
        for pair in readings.windows(2) {
            let UnitUseReading::Mean(mean) = &pair[1].units else {
                return None;
            };
            let length = (pair[1].at - pair[0].at).get();
            used += unit(mean)?.get() * length;
            time += length;
        }
        (time > 0.0).then(|| Ratio::new(used / time))
    };
    UnitUse {
        cores: mean(|units| units.cores),
        tensor: mean(|units| units.tensor),
        memory: mean(|units| units.memory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Moment {
        Moment::from_nanos((seconds * 1e9) as u64)
    }

    fn reading(seconds: f64, capped: Option<f64>, memory: UnitUseReading) -> LimitReadings {
        LimitReadings {
            at: at(seconds),
            throttled: ThrottleTimes {
                power_cap: capped.map(Seconds::new),
                ..ThrottleTimes::default()
            },
            units: memory,
            power_cap: Some(Watts::new(700.0)),
        }
    }

    fn memory(share: f64) -> UnitUseReading {
        UnitUseReading::Mean(UnitUse {
            memory: Some(Ratio::new(share)),
            ..UnitUse::default()
        })
    }

    #[test]
    fn a_window_has_the_differences_between_its_ends() {
        let readings = [
            reading(0.0, Some(3.0), UnitUseReading::Started),
            reading(10.0, Some(3.0), memory(0.1)),
            reading(12.0, Some(4.0), memory(0.9)),
            reading(20.1, Some(8.0), memory(0.5)),
            reading(40.0, Some(8.0), memory(0.0)),
        ];
        let found = WindowLimits::of(&readings, &Span::new(at(10.0), at(20.0)));
        let capped = found.throttled_by_cap.unwrap().get();
        assert!((capped - 5.0 / 10.1).abs() < 1e-9, "{capped}");
        let used = found.units.memory.unwrap().get();
        assert!(
            (used - (0.9 * 2.0 + 0.5 * 8.1) / 10.1).abs() < 1e-9,
            "{used}"
        );
        assert_eq!(found.units.cores, None);
        assert_eq!(found.power_cap, Some(Watts::new(700.0)));
    }

    #[test]
    fn missing_counters_and_counters_that_go_back_are_unknown() {
        let window = Span::new(at(0.0), at(10.0));
        let failed = UnitUseReading::Failed("in use by another client".to_owned());
        let readings = [
            reading(0.0, Some(3.0), UnitUseReading::Started),
            reading(10.0, Some(1.0), failed),
        ];
        let found = WindowLimits::of(&readings, &window);
        assert_eq!(found.throttled_by_cap, None);
        assert_eq!(found.units, UnitUse::default());
        assert_eq!(found.power_cap, Some(Watts::new(700.0)));
        let nothing = WindowLimits::default();
        assert_eq!(WindowLimits::of(&[], &window), nothing);
        assert_eq!(WindowLimits::of(&readings[..1], &window), nothing);
        // A counter that was reset within the window is unknown even if it is higher at the end than at the begin.
        let reset = [
            reading(0.0, Some(1.0), UnitUseReading::Started),
            reading(5.0, Some(0.5), UnitUseReading::Unsupported),
            reading(10.0, Some(5.5), UnitUseReading::Unsupported),
        ];
        assert_eq!(WindowLimits::of(&reset, &window).throttled_by_cap, None);
        // A counter that lags says nothing about a short window.
        let short = [
            reading(0.0, Some(0.0), UnitUseReading::Started),
            reading(2.0, Some(0.5), memory(0.5)),
        ];
        let found = WindowLimits::of(&short, &Span::new(at(0.0), at(2.0)));
        assert_eq!(
            (found.throttled_by_cap, found.units.memory),
            (None, Some(Ratio::new(0.5)))
        );
        // No reading was made near the end of this window.
        assert_eq!(
            WindowLimits::of(&readings, &Span::new(at(0.0), at(30.0))),
            nothing
        );
    }
}
