//! What is to be small, or large.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use sweetspot_quantity::{Joules, Seconds};

/// What a configuration came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Of a run.
    pub time: Seconds,
    /// Of a run.
    pub energy: Joules,
    /// Done in a run, where known.
    pub items: Option<f64>,
}

/// What a choice is made by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// Least energy.
    Energy,
    /// Least time.
    Time,
    /// Least average power.
    Power,
    /// Least energy times time.
    Edp,
    /// Least energy times time squared.
    Ed2p,
    /// Least energy-delay sum with this `k`.
    Eds(f64),
    /// Most percentage of energy saved less percentage of time lost.
    GainMinusLoss,
    /// Least energy for an item.
    EnergyPerItem,
    /// Most items for a joule.
    ItemsPerJoule,
    /// Most items in a second.
    Throughput,
}

/// Text that names no objective.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ObjectiveError {
    /// Not the name of one.
    #[error("there is no objective `{0}`; there are {names}", names = NAMES.join(", "))]
    Unknown(String),
    /// An energy-delay sum without a usable factor.
    #[error(
        "`{0}` needs a factor above 1, such as eds:1.5: the time at which energy may be nothing, against the reference"
    )]
    Factor(String),
}

const NAMES: [&str; 10] = [
    "energy",
    "time",
    "power",
    "edp",
    "ed2p",
    "eds:K",
    "gain-minus-loss",
    "energy-per-item",
    "items-per-joule",
    "throughput",
];

impl Objective {
    /// Its value for an outcome; nothing where it needs items and they are not known.
    pub fn value(&self, outcome: &Outcome, reference: &Outcome) -> Option<f64> {
        let (time, energy) = (outcome.time.get(), outcome.energy.get());
        let relative_time = (outcome.time / reference.time).get();
        let relative_energy = (outcome.energy / reference.energy).get();
        let value = match *self {
            Self::Energy => energy,
            Self::Time => time,
            Self::Power => (outcome.energy / outcome.time).get(),
            Self::Edp => energy * time,
            Self::Ed2p => energy * time * time,
            // Equations 3 and 4 of power_capping_2022: alpha E + beta t with
            // alpha = (k-1) / (k Eref) and beta = 1 / (k tref).
            Self::Eds(k) => (k - 1.0) / k * relative_energy + relative_time / k,
            Self::GainMinusLoss => (1.0 - relative_energy) - (relative_time - 1.0),
            Self::EnergyPerItem => energy / outcome.items?,
            Self::ItemsPerJoule => outcome.items? / energy,
            Self::Throughput => outcome.items? / time,
        };
        value.is_finite().then_some(value)
    }

    /// Whether more is better.
    pub const fn is_maximised(&self) -> bool {
        matches!(
            self,
            Self::GainMinusLoss | Self::ItemsPerJoule | Self::Throughput
        )
    }

    /// Whether the first value is better than the second.
    pub fn is_better(&self, value: f64, than: f64) -> bool {
        if self.is_maximised() {
            value > than
        } else {
            value < than
        }
    }
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(factor) = text.strip_prefix("eds:") {
            return match factor.parse::<f64>() {
                Ok(k) if k > 1.0 && k.is_finite() => Ok(Self::Eds(k)),
                _ => Err(ObjectiveError::Factor(text.to_owned())),
            };
        }
        Ok(match text {
            "energy" => Self::Energy,
            "time" => Self::Time,
            "power" => Self::Power,
            "edp" => Self::Edp,
            "ed2p" => Self::Ed2p,
            "gain-minus-loss" => Self::GainMinusLoss,
            "energy-per-item" => Self::EnergyPerItem,
            "items-per-joule" => Self::ItemsPerJoule,
            "throughput" => Self::Throughput,
            "eds" => return Err(ObjectiveError::Factor(text.to_owned())),
            _ => return Err(ObjectiveError::Unknown(text.to_owned())),
        })
    }
}

impl Display for Objective {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Energy => f.pad("energy"),
            Self::Time => f.pad("time"),
            Self::Power => f.pad("power"),
            Self::Edp => f.pad("edp"),
            Self::Ed2p => f.pad("ed2p"),
            Self::Eds(k) => f.pad(&format!("eds:{k:?}")),
            Self::GainMinusLoss => f.pad("gain-minus-loss"),
            Self::EnergyPerItem => f.pad("energy-per-item"),
            Self::ItemsPerJoule => f.pad("items-per-joule"),
            Self::Throughput => f.pad("throughput"),
        }
    }
}
