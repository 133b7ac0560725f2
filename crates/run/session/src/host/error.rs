//! Why the GPUs of this computer cannot be used as requested.

use sweetspot_device::{HostError, OpenError, SelectError};

/// Why the GPUs of this computer cannot be used as requested.
#[derive(Debug, thiserror::Error)]
pub enum DevicesError {
    /// The GPU driver cannot be reached.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A GPU that was listed cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// This computer has no GPU.
    #[error("there is no NVIDIA GPU on this machine")]
    NoGpu,
    /// The kernel shows no processor package.
    #[error(
        "the kernel shows no processor package below `{0}/class/powercap`: load its driver with `modprobe intel_rapl_msr`; virtual machines and containers often have none"
    )]
    NoPackage(String),
    /// The kernel shows no energy counter of the host.
    #[error(
        "the energy of the processors is unknown, because the kernel shows no package below `{0}/class/powercap`: load its driver with `modprobe intel_rapl_msr`; virtual machines and containers often have none"
    )]
    NoHostEnergy(String),
    /// A device selector, such as `0,1` or a UUID, names no device.
    #[error("{selector}: {problem}")]
    Select {
        /// The selector as the user wrote it.
        selector: String,
        /// What is wrong with the selector.
        problem: SelectError,
    },
    /// The request needs more GPUs than are available.
    #[error("{wanted} GPUs are needed, but only {available} can be used")]
    TooFew {
        /// The number of GPUs that the request needs.
        wanted: usize,
        /// The number of GPUs that can be used.
        available: usize,
    },
    /// A device does not support a setting or a sensor.
    #[error("{device}: {problem}")]
    NotSupported {
        /// The product name of the device.
        device: String,
        /// What the device does not support, as a sentence about it.
        problem: String,
    },
    /// A device no longer responds.
    #[error(
        "{0}: the device is lost: it no longer answers; a reboot or `nvidia-smi --gpu-reset` may bring it back"
    )]
    Lost(String),
    /// The request would change a device setting, which is not allowed.
    #[error("read-only mode is on: no device setting may be changed")]
    ReadOnly,
    /// A study's configuration was to be used on a GPU of another model, or on a real GPU in place of a simulated one, or
    /// the other way round.
    #[error(
        "the study was measured on {measured}, but GPU {index} of this machine is {here}, so its recommendation may not hold here"
    )]
    OtherGpu {
        /// The model of the study's GPU.
        measured: String,
        /// The index of the GPU of this machine.
        index: u32,
        /// The model of the GPU of this machine.
        here: String,
    },
    /// The request names no setting to change.
    #[error("no setting to change was given")]
    NothingToSet,
}
