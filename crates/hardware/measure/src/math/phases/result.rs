//! The result of the attribution of energy to phases, and its errors.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Joules, Seconds, Watts};

use crate::math::{Energy, EnergyError, Response};

/// The time of one phase, which its marks tell.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseTime {
    /// The phase's name; `other` is the time outside all phases.
    pub name: String,
    /// The time spent in the phase within the measurement window, without phases nested in it.
    pub time: Seconds,
    /// How often the phase occurred in the measurement window; 0 for `other`.
    pub count: usize,
}

/// The energy of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseEnergy {
    /// The phase's name.
    pub name: String,
    /// The time spent in the phase within the measurement window, without phases nested in it.
    pub time: Seconds,
    /// How often the phase occurred in the measurement window.
    pub count: usize,
    /// The energy drawn in the phase.
    pub energy: Joules,
    /// The 95 % confidence interval of the energy.
    pub interval95: (Joules, Joules),
    /// The mean power during the phase.
    pub power: Watts,
    /// The 95 % confidence interval of the mean power.
    pub power_interval95: (Watts, Watts),
}

/// The energy of a measurement window, divided into phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// The phases in the order of their first span.
    pub phases: Vec<PhaseEnergy>,
    /// The energy of the time that belongs to no phase.
    pub other: PhaseEnergy,
    /// The energy of the whole measurement window: the sum of `phases` and `other`.
    pub total: Energy,
    /// The best-fitting response of the driver's buffer; `None` if its samples were not used.
    pub response: Option<Response>,
    /// The number of readings that were used.
    pub readings: usize,
    /// The standard deviation of the differences between the readings and the fitted model.
    pub residual: Watts,
}

/// The reason why energy cannot be attributed to phases.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AttributionError {
    /// No phase overlaps the measurement window.
    #[error(
        "no phase was marked within the measurement window: mark phases, or choose another window"
    )]
    NoPhases,
    /// The energy of the measurement window is unknown.
    #[error("phase energies need the energy of the measurement window, which is unknown: {0}")]
    NoEnergy(#[from] EnergyError),
    /// There are too few power readings for so many phases.
    #[error(
        "{readings} readings are too few for {phases} phases: measure for longer, or mark fewer phases"
    )]
    TooFewReadings {
        /// The number of power readings in the measurement window.
        readings: usize,
        /// The number of phases, including the time that belongs to no phase.
        phases: usize,
    },
    /// Two phases contribute to every reading in the same proportion, so their energies cannot be separated.
    #[error(
        "phases '{first}' and '{second}' cannot be separated: they have the same proportion in every reading \
         ({reason}); vary the batch, mark them as one phase, or measure each alone"
    )]
    Inseparable {
        /// The name of one of the two phases.
        first: String,
        /// The name of the other phase.
        second: String,
        /// Why the readings cannot separate the two phases.
        reason: String,
    },
}
