//! Why a simulation in virtual time cannot be run.

use sweetspot_control::hold::HoldConfigError;
use sweetspot_control::tune::TuneSpaceError;
use sweetspot_predict::WorkloadError;
use sweetspot_sim::{ArrivalError, CatalogueError, GpuListError, PlacementError};
use sweetspot_study::{
    AxesError, DefinitionError, ReferenceFailed, SearchError, StoreError, StudyError,
};

/// Why a simulation in virtual time cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// Neither a GPU nor a node was named.
    #[error("no simulated GPU was named: name a GPU, or a node with GPUs")]
    NoGpu,
    /// The list of GPUs cannot be read.
    #[error(transparent)]
    GpuList(#[from] GpuListError),
    /// A profile is missing or cannot be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The workload cannot be found or predicted.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The workload cannot run on the GPU, for example because it does not fit into memory.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// No network, which is the workload, was named.
    #[error("no workload was named for the simulated GPU")]
    NoNetwork,
    /// The energy of the whole node was asked for, but no node was named.
    #[error("the energy of the node is unknown without a node profile")]
    NoNode,
    /// The study cannot be planned, run or stored.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The operating system cannot start a thread.
    #[error("cannot start a thread: end other programs and try again")]
    NoThread,
    /// The GPUs have no settings that can be tuned as requested.
    #[error(transparent)]
    TuneSpace(#[from] TuneSpaceError),
    /// The objective or a limit cannot be evaluated while a job runs.
    #[error("{subject}: {problem}")]
    Criteria {
        /// The objective or limit that cannot be evaluated.
        subject: String,
        /// Why the objective or limit cannot be evaluated.
        problem: String,
    },
    /// A simulated GPU failed.
    #[error("{device}: {problem}")]
    Device {
        /// The product name of the simulated GPU.
        device: String,
        /// The error that the simulated GPU returned.
        problem: String,
    },
    /// The constraints of `hold` contradict each other.
    #[error(transparent)]
    Hold(#[from] HoldConfigError),
    /// The requests that a server is to serve cannot be simulated.
    #[error(transparent)]
    Arrivals(#[from] ArrivalError),
}

/// Lets `?` turn the errors of a study into [`StudyError`] first.
macro_rules! from_study {
    ($($source:ty),*) => {
        $(impl From<$source> for SimulationError {
            fn from(error: $source) -> Self {
                Self::Study(error.into())
            }
        })*
    };
}

from_study!(
    AxesError,
    DefinitionError,
    ReferenceFailed,
    SearchError,
    StoreError
);
