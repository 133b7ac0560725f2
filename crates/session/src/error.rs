//! Why a request could not be met.

use sweetspot_sim::{CatalogueError, JobError, Mode};
use sweetspot_study::AxisError;

use crate::published::PublishedError;

/// Why a request could not be met: always something the user can change.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A profile that is not there or cannot be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// An axis that cannot be explored.
    #[error("--power-cap: {0}")]
    PowerCap(AxisError),
    /// A workload that does not fit its GPU.
    #[error("{workload}: {problem}")]
    Job {
        /// Which workload.
        workload: String,
        /// What is wrong.
        problem: JobError,
    },
    /// A workload of the other mode.
    #[error("{workload} is a {has} workload; there is none for {asked}")]
    Mode {
        /// Which workload.
        workload: String,
        /// What it does.
        has: Mode,
        /// What was asked for.
        asked: Mode,
    },
    /// No configuration could be run.
    #[error("no run of {study} ended well: {reason}")]
    NothingRan {
        /// Which study.
        study: String,
        /// What the first failure was.
        reason: String,
    },
    /// The published figures to compare with.
    #[error(transparent)]
    Published(#[from] PublishedError),
}
