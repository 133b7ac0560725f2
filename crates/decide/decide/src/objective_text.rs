//! The names of objectives.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use crate::Objective;

/// A text that is not the name of an objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveError {
    /// No objective has this name.
    #[error("unknown objective `{0}`: use {names}", names = names())]
    Unknown(String),
    /// The factor of an energy-delay sum is missing or is not above 1.
    #[error(
        "`{0}` needs a factor above 1, such as eds:1.5: the larger the factor, the more energy counts against time"
    )]
    Factor(String),
}

/// The objectives without a parameter, by name.
const NAMES: [(&str, Objective); 11] = [
    ("energy", Objective::Energy),
    ("time", Objective::Time),
    ("power", Objective::Power),
    ("edp", Objective::Edp),
    ("ed2p", Objective::Ed2p),
    ("gain-minus-loss", Objective::GainMinusLoss),
    ("energy-per-item", Objective::EnergyPerItem),
    ("items-per-joule", Objective::ItemsPerJoule),
    ("throughput", Objective::Throughput),
    ("cost", Objective::Cost),
    ("carbon", Objective::Carbon),
];

/// The names of all objectives, separated by commas, for error messages.
fn names() -> String {
    let mut names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    names.insert(5, "eds:K");
    names.join(", ")
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.to_ascii_lowercase();
        if let Some(factor) = lower.strip_prefix("eds:") {
            return match factor.parse::<f64>() {
                Ok(k) if k > 1.0 && k.is_finite() => Ok(Self::Eds(k)),
                _ => Err(ObjectiveError::Factor(text.to_owned())),
            };
        }
        if lower == "eds" {
            return Err(ObjectiveError::Factor(text.to_owned()));
        }
        NAMES
            .iter()
            .find(|(name, _)| *name == lower)
            .map(|(_, objective)| *objective)
            .ok_or_else(|| ObjectiveError::Unknown(text.to_owned()))
    }
}

impl Display for Objective {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        if let Self::Eds(k) = self {
            return f.pad(&format!("eds:{k:?}"));
        }
        let named = NAMES.iter().find(|(_, objective)| objective == self);
        f.pad(named.map_or("", |(name, _)| name))
    }
}
