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
        /// The operating system's error.
        problem: std::io::Error,
    },
    /// The folder does not contain a simulated host, or one of another program version.
    #[error("{path} does not contain a simulated host of this program version: {reason}")]
    Format {
        /// The path of the folder.
        path: PathBuf,
        /// What is wrong with the folder's content.
        reason: String,
    },
    /// A profile in the simulated host's folder is invalid.
    #[error(transparent)]
    Profile(#[from] sweetspot_sim::ProfileError),
    /// The GPU already runs the maximum number of jobs, which is this number.
    #[error("this simulated GPU already runs {0} jobs, which is the maximum")]
    TooManyJobs(usize),
    /// The job of this process was removed, because the process did not access the GPU for too long.
    #[error(
        "the job of process {0} on this simulated GPU has expired: the process did not access the GPU for too long"
    )]
    JobExpired(u32),
    /// A workload iteration has too many phases: their number, and the maximum.
    #[error("an iteration has {0} phases, and at most {1} are supported")]
    TooManyPhases(usize, usize),
}
