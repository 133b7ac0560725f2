//! Why a guard did not do what it was asked, as its client sees it.

use std::path::PathBuf;

use crate::refusal::Refusal;

/// Why a guard did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// It said why.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No guard could be started, so nothing was changed.
    #[error("the guard cannot be started in {}: {reason}", folder.display())]
    CannotStart {
        /// The folder of its socket.
        folder: PathBuf,
        /// Whether the caller lacks the right to use the folder.
        denied: bool,
        /// What the system says.
        reason: String,
    },
    /// The workload could not be started.
    #[error("cannot run {program}: {reason}")]
    NotStarted {
        /// What was to run.
        program: String,
        /// Whether there is no such program.
        missing: bool,
        /// What the system says.
        reason: String,
    },
    /// It is gone.
    #[error("the guard is gone ({0}); `sweetspot restore` puts back what it may have left changed")]
    Gone(String),
    /// It is gone, and another did its work.
    #[error("the guard is gone ({0}); another has put everything back")]
    Replaced(String),
}

impl GuardError {
    /// Whether a right is missing that root would have.
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.is_permission_denied(),
            Self::CannotStart { denied, .. } => *denied,
            Self::NotStarted { .. } | Self::Gone(_) | Self::Replaced(_) => false,
        }
    }
}
