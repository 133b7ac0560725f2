//! Why a study cannot be planned, run or stored.

use std::path::PathBuf;

use crate::{AxesError, DefinitionError, ReferenceFailed, RepeatsError, SearchError, StoreError};

/// Why a study cannot be planned, run or stored.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The definition contradicts itself.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The axes cannot be explored.
    #[error(transparent)]
    Axes(#[from] AxesError),
    /// The search cannot begin.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The number of runs of each configuration cannot be raised.
    #[error(transparent)]
    Repeats(#[from] RepeatsError),
    /// The study cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The samples of a run cannot be written.
    #[error("cannot write {}: {problem}; the runs before this one are stored", file.display())]
    Samples {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        problem: std::io::Error,
    },
    /// The reference failed, so there is nothing to compare with.
    #[error(transparent)]
    ReferenceFailed(#[from] ReferenceFailed),
}
