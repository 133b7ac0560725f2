//! Why a simulation in virtual time cannot be run.

use sweetspot_control::hold::HoldConfigError;
use sweetspot_control::tune::TuneSpaceError;
use sweetspot_sim::{ArrivalError, CatalogueError, GpuListError, PlacementError};
use sweetspot_study::{AxesError, DefinitionError, ReferenceFailed, SearchError, StoreError};

/// Why a simulation in virtual time cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// Neither a GPU nor a node was named.
    #[error("no simulated GPU: name one, or a node that has some")]
    NoGpu,
    /// The list of GPUs cannot be read.
    #[error(transparent)]
    GpuList(#[from] GpuListError),
    /// A profile is missing or cannot be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The workload cannot run on the GPU.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// No network was named.
    #[error("a simulated GPU needs a workload")]
    NoNetwork,
    /// The energy of a node was asked for, but no node was named.
    #[error("the energy of the node needs a host model")]
    NoNode,
    /// The definition of the study contradicts itself.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The axes of the study cannot be explored.
    #[error(transparent)]
    Axes(#[from] AxesError),
    /// The search of the study cannot start.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The study cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The samples of a run cannot be written.
    #[error("cannot write {}: {problem}; earlier runs are kept", file.display())]
    Samples {
        /// The file.
        file: std::path::PathBuf,
        /// The error of the operating system.
        problem: std::io::Error,
    },
    /// The operating system starts no thread.
    #[error("cannot start a thread: end other programs and try again")]
    NoThread,
    /// The reference failed, so that there is nothing to compare with.
    #[error(transparent)]
    ReferenceFailed(#[from] ReferenceFailed),
    /// The GPUs cannot be tuned.
    #[error(transparent)]
    TuneSpace(#[from] TuneSpaceError),
    /// A running job cannot be judged by the criteria.
    #[error("{subject}: {problem}")]
    Criteria {
        /// The part of the criteria that cannot be judged.
        subject: String,
        /// Why it cannot be judged.
        problem: String,
    },
    /// A simulated GPU failed.
    #[error("{device}: {problem}")]
    Device {
        /// The name of the GPU.
        device: String,
        /// Its error.
        problem: String,
    },
    /// The constraints of a hold contradict each other.
    #[error(transparent)]
    Hold(#[from] HoldConfigError),
    /// The requests that a server is to serve cannot be simulated.
    #[error(transparent)]
    Arrivals(#[from] ArrivalError),
}
