//! Readings of sensors.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Celsius, Joules, Megahertz, Ratio, Watts};

use crate::{Moment, SensorKind};

/// A sensor's value in its own unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// The value of an energy counter.
    Energy(Joules),
    /// The value of a power sensor.
    Power(Watts),
    /// The value of a temperature sensor.
    Temperature(Celsius),
    /// The value of a clock sensor.
    Frequency(Megahertz),
    /// The value of a utilisation sensor.
    Share(Ratio),
    /// The throttle reasons.
    Throttle(Throttle),
}

/// The reasons why a device does not run faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// No work runs on the device.
    pub idle: bool,
    /// The power cap limits the clock.
    pub power_cap: bool,
    /// A clock setting limits the clock.
    pub clock_setting: bool,
    /// The temperature limits the clock.
    pub thermal: bool,
    /// Another limit of the board applies.
    pub hardware: bool,
}

/// The samples read from the driver's buffer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrainedSamples {
    /// The samples, oldest first, with times on the machine's monotonic clock.
    pub readings: Vec<Reading>,
    /// Whether the wall clock, which drivers use for samples, was set since the last drain: times before and
    /// after it cannot be compared.
    pub clock_stepped: bool,
}

/// The three power limits of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerLimits {
    /// The limit that was set.
    pub requested: Watts,
    /// The limit in force: the lowest of several limits.
    pub enforced: Watts,
    /// The limit as shipped.
    pub default: Watts,
}

/// A value with its sensor and its moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The sensor.
    pub source: SensorKind,
    /// The moment that the value applies to.
    pub at: Moment,
    /// The value.
    pub amount: Amount,
}
