//! The sensors of a device.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::Seconds;

/// What a sensor of a device measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SensorKind {
    /// The energy drawn since an arbitrary origin. The counter may wrap around to zero.
    EnergyCounter,
    /// Power averaged over a long time, such as one second.
    AveragePower,
    /// Power averaged over a short time, such as 25 ms.
    InstantPower,
    /// Power samples with their times, which the driver stores in a buffer.
    BufferedPower,
    /// Power of the memory alone, averaged over a long time.
    MemoryPower,
    /// Temperature of the chip.
    Temperature,
    /// The present frequency of the cores.
    CoreClock,
    /// The present frequency of the memory.
    MemoryClock,
    /// The share of the time in which at least one kernel ran.
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

/// The part of the machine whose power or energy a sensor measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The sensor measures the whole device.
    Device,
    /// The sensor measures the device's memory alone.
    Memory,
    /// The sensor measures the module that carries the device, with everything else on it.
    Module,
}

/// A sensor and its properties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SensorDescriptor {
    /// What the sensor measures.
    pub kind: SensorKind,
    /// The part of the machine that the sensor measures.
    pub scope: Scope,
    /// The vendor's function or field for the sensor, such as `nvmlDeviceGetPowerUsage`.
    pub source: String,
    /// The time between two updates of the sensor's value; `None` if unknown.
    pub update_period: Option<Seconds>,
    /// The time over which each value of the sensor is averaged; `None` if unknown.
    pub window: Option<Seconds>,
}
