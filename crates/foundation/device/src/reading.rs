//! One value of one sensor.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Celsius, Joules, Megahertz, Ratio, Watts};

use crate::{Moment, SensorKind};

/// A value in the sensor's own quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// Of an energy counter.
    Energy(Joules),
    /// Of a power sensor.
    Power(Watts),
    /// Of a thermometer.
    Temperature(Celsius),
    /// Of a clock.
    Frequency(Megahertz),
    /// Of a utilisation sensor.
    Share(Ratio),
    /// Of throttling.
    Throttle(Throttle),
}

/// What keeps a device from running faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// Nothing runs on it.
    pub idle: bool,
    /// The power cap.
    pub power_cap: bool,
    /// A clock that was set.
    pub clock_setting: bool,
    /// Heat.
    pub thermal: bool,
    /// Something else of the board.
    pub hardware: bool,
}

/// What a drain of the driver's buffer brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drained {
    /// Oldest first, on the machine's monotonic clock.
    pub readings: Vec<Reading>,
    /// The wall clock, by which drivers stamp samples, was set since the last drain: times before it are
    /// not to be compared with those after.
    pub clock_stepped: bool,
}

/// The three values that people mix up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerLimits {
    /// As set.
    pub requested: Watts,
    /// In force: the lowest of several limits.
    pub enforced: Watts,
    /// As shipped.
    pub default: Watts,
}

/// A value, the sensor it came from, and the moment it is true of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Which sensor.
    pub source: SensorKind,
    /// When.
    pub at: Moment,
    /// How much.
    pub amount: Amount,
}
