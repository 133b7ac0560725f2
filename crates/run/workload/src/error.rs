//! Why a command could not be run as asked.

use sweetspot_guard::{GuardError, JournalError};
use sweetspot_link::LinkError;

/// Why a command could not be run as asked.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The command could not be started: correct it.
    #[error("cannot run {program}: {reason}")]
    NotStarted {
        /// Its first word.
        program: String,
        /// Whether there is no such program.
        is_missing: bool,
        /// What the system says.
        reason: String,
    },
    /// A signal came before anything was measured.
    #[error("ended by signal {0}: nothing was measured")]
    Interrupted(i32),
    /// The guard refused, or is gone.
    #[error(transparent)]
    Guard(GuardError),
    /// The guard's journal cannot be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The link to the command cannot be made.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The operating system refused something.
    #[error("{what}: {problem}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        problem: std::io::Error,
    },
}

impl WorkloadError {
    /// Whether the caller lacks a right that root would have.
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Guard(error) => error.is_permission_denied(),
            Self::Journal(error) => error.is_permission_denied(),
            _ => false,
        }
    }

    /// The operating system refused `what`.
    pub(crate) fn system(what: &'static str) -> impl Fn(std::io::Error) -> Self + Copy {
        move |problem| Self::System { what, problem }
    }

    pub(crate) fn not_started(program: String, problem: &std::io::Error) -> Self {
        Self::NotStarted {
            program,
            is_missing: problem.kind() == std::io::ErrorKind::NotFound,
            reason: problem.to_string(),
        }
    }
}

impl From<GuardError> for WorkloadError {
    fn from(error: GuardError) -> Self {
        match error {
            GuardError::NotStarted {
                program,
                missing,
                reason,
            } => Self::NotStarted {
                program,
                is_missing: missing,
                reason,
            },
            other => Self::Guard(other),
        }
    }
}
