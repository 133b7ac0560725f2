//! Why there is nothing to choose.

use crate::choice::{Excluded, Exclusion};
use crate::{Broken, Limit, NoValue, Objective};

/// Why there is no choice, and what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoChoice {
    /// No candidates.
    #[error("no configuration was tried; add an axis with several values")]
    Nothing,
    /// Nothing to choose between.
    #[error("only one configuration was tried; add an axis with several values")]
    OnlyOne,
    /// No runs yet.
    #[error("no configuration has been run; resume the study")]
    NotRun,
    /// No candidate ran well.
    #[error("no configuration ran without a failure; the first failed with: {0}")]
    AllFailed(String),
    /// No candidate has a value.
    #[error("no configuration has a value of {objective}: {reason}")]
    NoValue {
        /// By which.
        objective: Objective,
        /// Why the first has none.
        reason: NoValue,
    },
    /// A limit on something that no run has.
    #[error("no run has the value that `{limit}` limits; there are {}", known.join(", "))]
    UnknownValue {
        /// The limit.
        limit: Limit,
        /// What could be limited.
        known: Vec<String>,
    },
    /// A command that may well run for a set time.
    #[error(
        "all runs took equally long and what they did is not known, so comparing them means nothing; let the workload report its progress, or say how many items it does"
    )]
    EqualTimes,
    /// No candidate keeps to the limits.
    #[error("no configuration keeps to every limit; the closest {}", broken.iter().map(Broken::to_string).collect::<Vec<_>>().join(", "))]
    OutsideLimits {
        /// The candidate that misses them by the least.
        closest: usize,
        /// What it misses.
        broken: Vec<Broken>,
    },
}

impl NoChoice {
    /// From why each candidate was left out.
    pub(crate) fn of(objective: Objective, excluded: Vec<Excluded>) -> Self {
        let mut closest: Option<(f64, usize, Vec<Broken>)> = None;
        let mut no_value = None;
        let mut failed = None;
        for Excluded { candidate, why } in excluded {
            match why {
                Exclusion::Limits(broken) => {
                    let by = distance(&broken);
                    if closest.as_ref().is_none_or(|(least, ..)| by < *least) {
                        closest = Some((by, candidate, broken));
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

/// The worst miss as a share of what is allowed; a miss that cannot be told is the farthest.
fn distance(broken: &[Broken]) -> f64 {
    let miss = |broken: &Broken| match &broken.by {
        Ok(excess) => match excess.relative() {
            Some(share) => share.get(),
            None => excess.value.abs(),
        },
        Err(_) => f64::INFINITY,
    };
    broken.iter().map(miss).fold(0.0, f64::max)
}
