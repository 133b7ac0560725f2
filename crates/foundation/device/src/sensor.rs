//! The ways to read a device.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::Seconds;

/// What a sensor gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SensorKind {
    /// Energy since some origin, ever growing until it wraps.
    EnergyCounter,
    /// Power averaged over a long window.
    AveragePower,
    /// Power over a short window.
    InstantPower,
    /// Power samples with their times, kept by the driver.
    BufferedPower,
    /// Power of the memory alone, averaged over a long window.
    MemoryPower,
    /// Temperature of the chip.
    Temperature,
    /// Clock of the cores.
    CoreClock,
    /// Clock of the memory.
    MemoryClock,
    /// Share of time in which anything ran.
    Utilisation,
    /// Why it does not run faster.
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

/// Whose value a sensor gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The whole device.
    Device,
    /// Its memory alone.
    Memory,
    /// The module it sits on, with what else is there.
    Module,
}

/// A sensor and how it behaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SensorDescriptor {
    /// What it gives.
    pub kind: SensorKind,
    /// Whose value it gives.
    pub scope: Scope,
    /// Where it comes from: `nvmlDeviceGetPowerUsage`.
    pub source: String,
    /// How often a new value appears, where known.
    pub update_period: Option<Seconds>,
    /// The span that one value covers, where known.
    pub window: Option<Seconds>,
}
