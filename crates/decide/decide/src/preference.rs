//! Which configuration to recommend if several may be the best.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// Which configuration to take among those that may be the best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    /// The fastest one.
    #[default]
    Time,
    /// The one that needs the least energy.
    Energy,
    /// The one with the best mean of the objective, even if others may be as good.
    Mean,
}

/// The text is not the name of a preference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown preference `{0}`: use time, energy or mean")]
pub struct PreferenceError(String);

impl Display for Preference {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Time => "time",
            Self::Energy => "energy",
            Self::Mean => "mean",
        })
    }
}

impl FromStr for Preference {
    type Err = PreferenceError;

    fn from_str(text: &str) -> Result<Self, PreferenceError> {
        [Self::Time, Self::Energy, Self::Mean]
            .into_iter()
            .find(|preference| preference.to_string() == text)
            .ok_or_else(|| PreferenceError(text.to_owned()))
    }
}
