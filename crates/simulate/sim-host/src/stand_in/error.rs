//! Why the simulated program `sim-workload` cannot run.

use sweetspot_quantity::Bytes;
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
    /// The port of a simulated server cannot be opened.
    #[error(
        "cannot listen on 127.0.0.1:{port}: {problem}: choose another port with --port, or a free one with --port 0"
    )]
    Port {
        /// The port.
        port: u16,
        /// The operating system's error.
        problem: std::io::Error,
    },
    /// The times of the language model are not known for this GPU.
    #[error(
        "the language model was measured on an NVIDIA H200 alone, not on {0}: simulate one with --gpu nvidia_h200"
    )]
    UnknownLlmGpu(String),
    /// The language model does not fit into the memory of the GPU.
    #[error(
        "CUDA out of memory: the language model and its cache need {need}, but only {free} are free"
    )]
    LlmMemory {
        /// The memory of weights and cache.
        need: Bytes,
        /// The free memory of the GPU.
        free: Bytes,
    },
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
