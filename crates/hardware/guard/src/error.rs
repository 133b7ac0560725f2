//! Errors of requests to a guard, as its client sees them.

use std::path::PathBuf;

use crate::refusal::Refusal;

/// The reason why a guard did not do what was requested.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The guard rejected the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The guard could not be started, so nothing was changed.
    #[error("cannot start the guard in {}: {reason}", folder.display())]
    CannotStart {
        /// The folder in which the socket to the guard should be created.
        folder: PathBuf,
        /// Whether the caller has no permission to use the folder.
        denied: bool,
        /// The system's explanation.
        reason: String,
    },
    /// The workload could not be started.
    #[error("cannot run {program}: {reason}")]
    NotStarted {
        /// The program that was to be run.
        program: String,
        /// Whether the program does not exist.
        missing: bool,
        /// The system's explanation.
        reason: String,
    },
    /// The guard ended or was killed because it did not answer.
    #[error(
        "the guard ended unexpectedly ({0}): run `sweetspot restore` to put back what it may have left changed"
    )]
    Gone(String),
    /// The guard ended, and another one has restored all settings.
    #[error("the guard ended unexpectedly ({0}); all settings were put back")]
    Replaced(String),
}

impl GuardError {
    /// Whether the request failed for lack of a permission that root has.
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.is_permission_denied(),
            Self::CannotStart { denied, .. } => *denied,
            Self::NotStarted { .. } | Self::Gone(_) | Self::Replaced(_) => false,
        }
    }
}
