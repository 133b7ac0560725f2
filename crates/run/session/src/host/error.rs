//! Why the devices of this machine cannot be used as requested.

use sweetspot_device::{HostError, OpenError, SelectError};

/// Why the devices of this machine cannot be used as requested.
#[derive(Debug, thiserror::Error)]
pub enum DevicesError {
    /// The driver cannot be reached.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A GPU that was found cannot be opened again.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The machine has no GPU.
    #[error("there is no NVIDIA GPU on this machine")]
    NoGpu,
    /// A selector names no device.
    #[error("{selector}: {problem}")]
    Select {
        /// The selector as the user wrote it.
        selector: String,
        /// What is wrong with it.
        problem: SelectError,
    },
    /// The request needs more GPUs than there are.
    #[error("{wanted} GPUs are needed, but there are {available}")]
    TooFew {
        /// The number of GPUs that are needed.
        wanted: usize,
        /// The number of GPUs that there are.
        available: usize,
    },
    /// A device does not support a setting or a sensor.
    #[error("{device}: {problem}")]
    NotSupported {
        /// The name of the device.
        device: String,
        /// What it does not support.
        problem: String,
    },
    /// A device no longer answers.
    #[error(
        "{0}: the device is lost: it no longer answers; a reboot or `nvidia-smi --gpu-reset` may bring it back"
    )]
    Lost(String),
    /// The request would change a device setting, which is not allowed.
    #[error("read-only mode is on: no device setting may be changed")]
    ReadOnly,
    /// The request sets nothing.
    #[error("nothing to set")]
    NothingToSet,
}
