//! Why a command could not be run.

use sweetspot_guard::{GuardError, JournalError};
use sweetspot_link::LinkError;

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The command could not be started; the user has to correct it.
    #[error("cannot run {program}: {reason}")]
    NotStarted {
        /// The program that was to be started.
        program: String,
        /// Whether the program does not exist.
        is_missing: bool,
        /// The operating system's error.
        reason: String,
    },
    /// The process to attach to cannot be found.
    #[error("cannot attach to process {pid}: {reason}")]
    NotAttached {
        /// The number of the process.
        pid: u32,
        /// The operating system's error.
        reason: String,
    },
    /// The metrics page is wrong, or its server does not answer.
    #[error("--metrics: {0}")]
    Metrics(String),
    /// A signal arrived before anything was measured.
    #[error("interrupted by signal {0}: nothing was measured")]
    Interrupted(i32),
    /// The guard refused a request or has died.
    #[error(transparent)]
    Guard(GuardError),
    /// The guard's journal cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The shared-memory link to the command cannot be created.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The operating system refused an operation.
    #[error("{what}: {problem}")]
    System {
        /// What failed, in words for the user.
        what: &'static str,
        /// The operating system's error.
        problem: std::io::Error,
    },
}

impl WorkloadError {
    /// Whether root's permission is missing.
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Guard(error) => error.is_permission_denied(),
            Self::Journal(error) => error.is_permission_denied(),
            _ => false,
        }
    }

    /// Converts an error of the operating system; `what` describes the failed operation.
    pub(crate) fn system(what: &'static str) -> impl Fn(std::io::Error) -> Self + Copy {
        move |problem| Self::System { what, problem }
    }

    /// The error that a program could not be started.
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
