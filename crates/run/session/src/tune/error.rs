//! Why a command cannot be tuned.

use sweetspot_control::tune::TuneSpaceError;

/// Why a command cannot be tuned.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The GPUs cannot be tuned.
    #[error(transparent)]
    Space(#[from] TuneSpaceError),
    /// The criteria cannot be evaluated while a job runs.
    #[error("{subject}: {problem}")]
    Criteria {
        /// The part of the criteria that cannot be evaluated.
        subject: String,
        /// Why it cannot be evaluated.
        problem: String,
    },
}
