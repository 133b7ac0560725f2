//! NVML's errors in our words.

use nvml_wrapper::error::NvmlError;
use sweetspot_device::{Knob, ReadError, SensorKind, WriteError};

/// Why there are no GPUs to be had from NVML.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No library.
    #[error(
        "cannot load NVIDIA's management library {library}: {reason}; is the driver installed? (SWEETSPOT_NVML names another library)"
    )]
    Library {
        /// Which was tried.
        library: String,
        /// What the loader says.
        reason: String,
    },
    /// A library without a driver.
    #[error("NVIDIA's driver is not loaded: `nvidia-smi` should list your GPUs")]
    Driver,
    /// The library answers, but not to this.
    #[error("NVML cannot {what}: {reason}")]
    Failed {
        /// What was asked.
        what: String,
        /// What it says.
        reason: String,
    },
}

pub fn failed(what: impl Into<String>) -> impl FnOnce(NvmlError) -> OpenError {
    let what = what.into();
    move |error| OpenError::Failed {
        what,
        reason: error.to_string(),
    }
}

pub fn of_read(sensor: SensorKind, error: NvmlError) -> ReadError {
    tracing::debug!(%sensor, %error, "read failed");
    match error {
        NvmlError::NotSupported
        | NvmlError::FailedToLoadSymbol(_)
        | NvmlError::FunctionNotFound => ReadError::Unsupported(sensor),
        NvmlError::NoPermission => ReadError::Denied(sensor),
        NvmlError::GpuLost => ReadError::Lost,
        other => ReadError::Failed {
            sensor,
            reason: other.to_string(),
        },
    }
}

pub fn of_write(knob: Knob, error: NvmlError) -> WriteError {
    tracing::warn!(%knob, %error, "write failed");
    match error {
        NvmlError::NotSupported
        | NvmlError::FailedToLoadSymbol(_)
        | NvmlError::FunctionNotFound => WriteError::Unsupported(knob),
        NvmlError::NoPermission => WriteError::Denied(knob),
        NvmlError::GpuLost => WriteError::Lost,
        other => WriteError::Failed {
            knob,
            reason: other.to_string(),
        },
    }
}
