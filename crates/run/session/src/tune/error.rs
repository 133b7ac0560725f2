//! Why a command cannot be tuned.

use sweetspot_control::tune::TuneSpaceError;

/// Why a command cannot be tuned.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The GPUs have no settings that can be tuned as requested.
    #[error(transparent)]
    Space(#[from] TuneSpaceError),
    /// The objective or a limit cannot be evaluated while a job runs.
    #[error("{subject}: {problem}")]
    Criteria {
        /// The objective or limit that cannot be evaluated.
        subject: String,
        /// Why the objective or limit cannot be evaluated.
        problem: String,
    },
}
