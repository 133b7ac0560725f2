//! NVML's errors in our words.

use nvml_wrapper::error::NvmlError;
use sweetspot_device::{DeviceId, HostError, Knob, OpenError, ReadError, SensorKind, WriteError};

/// The library cannot be loaded.
pub fn no_library(library: &str, reason: &str) -> HostError {
    HostError::Unavailable(format!(
        "cannot load NVIDIA's management library {library}: {reason}; is the driver installed? (SWEETSPOT_NVML names another library)"
    ))
}

/// The library is there, and no driver.
pub fn no_driver() -> HostError {
    HostError::Unavailable(
        "NVIDIA's driver is not loaded: `nvidia-smi` should list your GPUs".to_owned(),
    )
}

/// The library answers, but refuses this.
pub fn failed(what: impl Into<String>) -> impl FnOnce(NvmlError) -> HostError {
    let what = what.into();
    move |error| HostError::Failed {
        library: "NVML",
        what,
        reason: error.to_string(),
    }
}

pub fn of_open(id: &DeviceId, error: NvmlError) -> OpenError {
    use OpenError;
    let (device, reason) = (id.clone(), error.to_string());
    match error {
        // NVML rejects text that no UUID looks like as an invalid argument.
        NvmlError::NotFound | NvmlError::InvalidArg => OpenError::NotFound { device, reason },
        NvmlError::NoPermission => OpenError::Denied { device, reason },
        NvmlError::GpuLost => OpenError::Lost {
            name: device.to_string(),
        },
        _ => OpenError::Failed { device, reason },
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
