//! Why the simulated program `sim-workload` cannot run.

use sweetspot_sim::{ArrivalError, PlacementError};

use crate::HostError;

/// Why the simulated program `sim-workload` cannot run.
#[derive(Debug, thiserror::Error)]
pub enum StandInError {
    /// The program does not run on a simulated host.
    #[error("sim-workload runs only on a simulated host")]
    NoHost,
    /// The simulated host cannot be used.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The workload cannot be found.
    #[error(transparent)]
    Workload(Box<dyn std::error::Error + Send + Sync>),
    /// The workload cannot run on the GPU.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The requests that the workload is to serve cannot be simulated.
    #[error(transparent)]
    Arrivals(#[from] ArrivalError),
    /// There are more ranks than GPUs that the program may use.
    #[error("{ranks} ranks need {ranks} GPUs, but only {visible} {} visible", if *visible == 1 { "is" } else { "are" })]
    TooFewGpus {
        /// The number of ranks that were requested.
        ranks: usize,
        /// The number of GPUs that the program may use.
        visible: usize,
    },
    /// `CUDA_VISIBLE_DEVICES` has this value, which names no GPU of the host.
    #[error("CUDA_VISIBLE_DEVICES={0} names no GPU of this host: use indices or UUIDs")]
    VisibleDevices(String),
    /// The shared-memory link to sweetspot cannot be used.
    #[error(transparent)]
    Link(#[from] sweetspot_link::LinkError),
    /// Standard output cannot be written.
    #[error("cannot print progress: {0}")]
    Print(std::io::Error),
}
