//! Energy per phase, or why there is none.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Joules, Seconds, Watts};

use crate::math::{Energy, EnergyError, Response};

/// What one phase took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseEnergy {
    /// Its name.
    pub name: String,
    /// How long it was under way in the window, without the phases within it.
    pub time: Seconds,
    /// How often.
    pub count: usize,
    /// Drawn meanwhile.
    pub energy: Joules,
    /// The energy lies in here in 95 of 100 cases.
    pub interval95: (Joules, Joules),
    /// Mean power.
    pub power: Watts,
    /// The power lies in here in 95 of 100 cases.
    pub power_interval95: (Watts, Watts),
}

/// A window's energy by phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// In the order of their first span.
    pub phases: Vec<PhaseEnergy>,
    /// What belongs to no phase.
    pub other: PhaseEnergy,
    /// The window's energy: what all of the above add up to.
    pub total: Energy,
    /// The buffer's response that fits best, where its samples were used.
    pub response: Option<Response>,
    /// Readings that were used.
    pub readings: usize,
    /// Deviation of the readings from the model.
    pub residual: Watts,
}

/// Why there is no energy per phase.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AttributionError {
    /// No phase reaches into the window.
    #[error("no phase was marked within the window: mark phases, or choose another window")]
    NoPhases,
    /// The window's energy is not known.
    #[error("phases need the window's energy: {0}")]
    NoEnergy(#[from] EnergyError),
    /// Too few readings for so many phases.
    #[error(
        "{readings} readings cannot tell {phases} phases apart: measure for longer, or mark fewer"
    )]
    TooFew {
        /// How many there are.
        readings: usize,
        /// And the rest.
        phases: usize,
    },
    /// Readings always saw the same mixture.
    #[error(
        "phases '{first}' and '{second}' cannot be told apart: in every reading they have the same proportion \
         ({reason}); vary the batch, mark them as one phase, or measure each alone"
    )]
    Inseparable {
        /// One of them.
        first: String,
        /// The other.
        second: String,
        /// How it was found.
        reason: String,
    },
}
