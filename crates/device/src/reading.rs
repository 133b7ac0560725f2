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
