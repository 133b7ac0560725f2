//! The sensors of a device.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::Seconds;

/// The kind of a sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SensorKind {
    /// Energy since some origin, increasing until it wraps around.
    EnergyCounter,
    /// Power averaged over a long window.
    AveragePower,
    /// Power over a short window.
    InstantPower,
    /// Power samples with their times, stored by the driver.
    BufferedPower,
    /// Power of the memory alone, averaged over a long window.
    MemoryPower,
    /// Temperature of the chip.
    Temperature,
    /// The core clock.
    CoreClock,
    /// The memory clock.
    MemoryClock,
    /// The share of time in which any kernel ran.
    Utilisation,
    /// The reasons why the device does not run faster.
    ThrottleReasons,
}

impl std::fmt::Display for SensorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::EnergyCounter => "energy counter",
            Self::AveragePower => "averaged power",
            Self::InstantPower => "instantaneous power",
            Self::BufferedPower => "buffered power samples",
            Self::MemoryPower => "memory power",
            Self::Temperature => "temperature",
            Self::CoreClock => "core clock",
            Self::MemoryClock => "memory clock",
            Self::Utilisation => "utilisation",
            Self::ThrottleReasons => "throttle reasons",
        })
    }
}

/// The part of the machine that a sensor covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The whole device.
    Device,
    /// The device's memory alone.
    Memory,
    /// The module that carries the device, with everything else on it.
    Module,
}

/// A sensor and its properties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SensorDescriptor {
    /// The kind.
    pub kind: SensorKind,
    /// The part of the machine that it covers.
    pub scope: Scope,
    /// The vendor's name of the sensor, such as `nvmlDeviceGetPowerUsage`.
    pub source: String,
    /// The time between two new values, where known.
    pub update_period: Option<Seconds>,
    /// The time that one value covers, where known.
    pub window: Option<Seconds>,
}
