//! Errors of requests to a guard, as its client sees them.

use crate::refusal::Refusal;

/// The reason why a guard did not do what was requested.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The guard refused the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The guard could not be started, so no setting was changed.
    #[error("cannot start the guard process, which restores device settings: {0}")]
    CannotStart(String),
    /// The workload could not be started.
    #[error("cannot run {program}: {reason}")]
    NotStarted {
        /// The program of the workload's command.
        program: String,
        /// Whether the program does not exist.
        missing: bool,
        /// The operating system's error message.
        reason: String,
    },
    /// The guard ended, or it was killed because it did not reply; the text says which.
    #[error(
        "the guard process ended unexpectedly ({0}): run `sweetspot restore` to restore device settings that it may have left changed"
    )]
    Gone(String),
    /// The guard ended unexpectedly, and another guard has restored all settings. The text says how the first
    /// one ended.
    #[error(
        "the guard process ended unexpectedly ({0}); another one has restored all device settings"
    )]
    Replaced(String),
}

impl GuardError {
    /// Whether root's permission is missing for the request.
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.is_permission_denied(),
            Self::CannotStart(_) | Self::NotStarted { .. } | Self::Gone(_) | Self::Replaced(_) => {
                false
            }
        }
    }
}
