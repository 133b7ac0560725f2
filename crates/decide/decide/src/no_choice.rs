//! Why no configuration can be chosen.

use crate::choice::{Excluded, Exclusion};
use crate::{BrokenLimit, Limit, NoValue, Objective};

/// Why no configuration can be chosen, and what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoChoice {
    /// There are no candidates.
    #[error("no configuration was tried; add an axis with several values")]
    Nothing,
    /// There is only one candidate.
    #[error("only one configuration was tried; add an axis with several values")]
    OnlyOne,
    /// No candidate has runs yet.
    #[error("no configuration has been run; resume the study")]
    NotRun,
    /// Every candidate failed; the text says why the first one did.
    #[error("no configuration ran without a failure; the first failed with: {0}")]
    AllFailed(String),
    /// The objective has no value for any candidate.
    #[error("no configuration has a value of {objective}: {reason}")]
    NoValue {
        /// The objective that was to be minimised or maximised.
        objective: Objective,
        /// Why the objective has no value for the first candidate.
        reason: NoValue,
    },
    /// A limit refers to a value that no run has.
    #[error("no run has the value of the limit `{limit}`; the values are {}", known.join(", "))]
    UnknownValue {
        /// The limit whose value no run has.
        limit: Limit,
        /// The names of the values that a limit could refer to.
        known: Vec<String>,
    },
    /// All runs took equally long, so the command may run for a fixed time.
    #[error(
        "the settings took equally long, within the noise of their runs, and the work they did is unknown, so they cannot be compared; let the workload report its progress, or give the number of items per run"
    )]
    EqualTimes,
    /// No candidate meets the limits.
    #[error("no configuration meets every limit; the closest one {}", broken.iter().map(BrokenLimit::to_string).collect::<Vec<_>>().join(", "))]
    OutsideLimits {
        /// The index of the candidate that misses the limits by the smallest share.
        closest: usize,
        /// The limits that the closest candidate misses.
        broken: Vec<BrokenLimit>,
    },
}

impl NoChoice {
    /// Summarises in one reason why each of the candidates was excluded.
    pub(crate) fn from_exclusions(objective: Objective, excluded: Vec<Excluded>) -> Self {
        let mut closest: Option<(f64, usize, Vec<BrokenLimit>)> = None;
        let mut no_value = None;
        let mut failed = None;
        for Excluded { candidate, why } in excluded {
            match why {
                Exclusion::Limits(broken) => {
                    let miss = distance(&broken);
                    if closest.as_ref().is_none_or(|(least, ..)| miss < *least) {
                        closest = Some((miss, candidate, broken));
                    }
                }
                Exclusion::NoValue(reason) => {
                    no_value.get_or_insert(reason);
                }
                Exclusion::Failed(reason) => {
                    failed.get_or_insert(reason);
                }
                Exclusion::NotRun => {}
            }
        }
        match (closest, no_value, failed) {
            (Some((_, closest, broken)), ..) => Self::OutsideLimits { closest, broken },
            (None, Some(reason), _) => Self::NoValue { objective, reason },
            (None, None, Some(reason)) => Self::AllFailed(reason),
            (None, None, None) => Self::NotRun,
        }
    }
}

/// The largest distance by which these limits are missed, as a share of the allowed value; infinite if one is unknown.
fn distance(broken: &[BrokenLimit]) -> f64 {
    let miss = |broken: &BrokenLimit| match &broken.excess {
        Ok(excess) => match excess.relative() {
            Some(share) => share.get(),
            None => excess.value.abs(),
        },
        Err(_) => f64::INFINITY,
    };
    broken.iter().map(miss).fold(0.0, f64::max)
}
