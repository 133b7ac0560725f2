//! Why the service cannot be installed or removed.

use std::io;
use std::path::{Path, PathBuf};

use crate::ownership::OwnershipError;

/// Why the service cannot be installed or removed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Only root can install a service.
    #[error("only root can {action} the service: run the command with sudo")]
    NotRoot {
        /// What was to be done.
        action: &'static str,
    },
    /// A file or folder is not protected from other users.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
    /// The systemd unit cannot name this library.
    #[error("the service cannot load the NVML library {path}: {reason}", path = .path.display())]
    UnusableLibrary {
        /// The library.
        path: PathBuf,
        /// The problem, and what to do.
        reason: &'static str,
    },
    /// A file cannot be read, written or removed.
    #[error("cannot {action} {path}: {error}", path = .path.display())]
    File {
        /// What was to be done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// A program that is needed is not installed.
    #[error("cannot find {names} in {folders}: {advice}")]
    MissingTool {
        /// The program, or the programs of which one is needed.
        names: &'static str,
        /// The folders that were searched.
        folders: String,
        /// What to do.
        advice: &'static str,
    },
    /// A program failed.
    #[error("`{command}` failed: {reason}; {advice}")]
    FailedTool {
        /// The command line.
        command: String,
        /// What the program said, or its exit status.
        reason: String,
        /// What to do.
        advice: &'static str,
    },
}

impl InstallError {
    /// The error for a file that cannot be used.
    pub(super) fn file(action: &'static str, path: &Path, error: impl Into<io::Error>) -> Self {
        Self::File {
            action,
            path: path.to_owned(),
            error: error.into(),
        }
    }
}
