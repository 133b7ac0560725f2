//! Why a simulated host cannot be used.

use std::path::PathBuf;

/// Why a simulated host cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The folder or a file in it cannot be read or written.
    #[error("cannot use {path} of the simulated host: {problem}")]
    Files {
        /// The path of the folder or file.
        path: PathBuf,
        /// The error of the system.
        problem: std::io::Error,
    },
    /// The folder is not a simulated host, or one of another version.
    #[error("{path} is not a simulated host of this version: {reason}")]
    Format {
        /// The path of the folder.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A profile in the folder is invalid.
    #[error(transparent)]
    Profile(#[from] sweetspot_sim::ProfileError),
    /// The GPU has the maximum number of jobs.
    #[error("this simulated GPU already runs {0} jobs, which is the maximum")]
    TooManyJobs(usize),
    /// The job was silent for too long.
    #[error("the job of process {0} on this simulated GPU has expired: it was silent for too long")]
    JobExpired(u32),
    /// The iteration has too many phases.
    #[error("an iteration has {0} phases, and at most {1} are supported")]
    TooManyPhases(usize, usize),
}
