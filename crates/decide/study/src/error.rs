//! Why a study cannot be planned, run or stored.

use std::path::PathBuf;

use crate::{AxesError, DefinitionError, ReferenceFailed, RepeatsError, SearchError, StoreError};

/// Why a study cannot be planned, run or stored.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The definition of the study is invalid.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The axes do not define a study.
    #[error(transparent)]
    Axes(#[from] AxesError),
    /// The search of the study cannot start.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The number of runs of each configuration cannot be raised.
    #[error(transparent)]
    Repeats(#[from] RepeatsError),
    /// The folder of the study cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The power samples of a run cannot be written.
    #[error("cannot write {}: {problem}; the runs before this one are stored", file.display())]
    Samples {
        /// The file that cannot be written.
        file: PathBuf,
        /// The error of the operating system.
        problem: std::io::Error,
    },
    /// The reference failed, so there is nothing to compare the other configurations with.
    #[error(transparent)]
    ReferenceFailed(#[from] ReferenceFailed),
}
