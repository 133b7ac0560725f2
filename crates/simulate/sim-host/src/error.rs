//! Why a simulated host cannot be used.

use std::path::PathBuf;

/// Why a simulated host cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The folder or a file in it.
    #[error("the simulated host in {path}: {problem}")]
    Files {
        /// Which.
        path: PathBuf,
        /// What the system says.
        problem: std::io::Error,
    },
    /// Not such a folder, or one of another version.
    #[error("{path} is not a simulated host of this version: {reason}")]
    Format {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A profile in it.
    #[error(transparent)]
    Profile(#[from] sweetspot_sim::ProfileError),
    /// Every place for a program is taken.
    #[error("{0} programs run on this simulated GPU already")]
    Full(usize),
    /// A program that was silent for too long.
    #[error("process {0} has no place on this simulated GPU any more: it was silent for too long")]
    Dropped(u32),
    /// An iteration with more phases than there is room for.
    #[error("an iteration of {0} phases is too long: at most {1} fit")]
    Phases(usize, usize),
}
