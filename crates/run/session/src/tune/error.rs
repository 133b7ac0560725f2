//! Why a command cannot be tuned.

use sweetspot_control::tune::TuneSpaceError;

/// Why a command cannot be tuned.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The GPUs cannot be tuned.
    #[error(transparent)]
    Space(#[from] TuneSpaceError),
    /// A running job cannot answer the question.
    #[error("{subject}: {problem}")]
    Question {
        /// The part of the question that cannot be answered.
        subject: String,
        /// Why it cannot be answered.
        problem: String,
    },
}
