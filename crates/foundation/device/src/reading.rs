//! Readings of sensors.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Celsius, Joules, Megahertz, Ratio, Watts};

use crate::{Moment, SensorKind};

/// The value of a sensor, in the unit of its kind of sensor.
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
    /// The reasons why the device does not run faster.
    Throttle(Throttle),
}

/// The reasons why a device does not run faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// Whether the clock is low because no work runs on the device.
    pub idle: bool,
    /// Whether the power cap limits the clock.
    pub power_cap: bool,
    /// Whether a clock setting limits the clock.
    pub clock_setting: bool,
    /// Whether the temperature limits the clock.
    pub thermal: bool,
    /// Whether another hardware limit of the board limits the clock.
    pub hardware: bool,
}

/// The power samples that were read from the driver's buffer at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrainedSamples {
    /// The samples, oldest first, with times on the machine's monotonic clock.
    pub readings: Vec<Reading>,
    /// Whether the machine's wall clock was changed since the last read. Drivers use it for the times of samples, so
    /// times before and after the change cannot be compared.
    pub clock_stepped: bool,
}

/// The three power limits of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerLimits {
    /// The power limit that was requested last.
    pub requested: Watts,
    /// The power limit that the device enforces: the lowest of the requested limit and those of the board.
    pub enforced: Watts,
    /// The vendor's default power limit.
    pub default: Watts,
}

/// A value of a sensor and the moment to which it applies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The sensor that was read.
    pub source: SensorKind,
    /// The moment to which the value applies.
    pub at: Moment,
    /// The value that was read.
    pub amount: Amount,
}
