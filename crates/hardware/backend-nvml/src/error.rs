//! Converts NVML's errors to those of the crate `device`.

use nvml_wrapper::error::NvmlError;
use sweetspot_device::{DeviceId, HostError, Knob, OpenError, ReadError, SensorKind, WriteError};

/// The error when the NVML library cannot be loaded.
pub fn library_not_found(library: &str, reason: &str) -> HostError {
    // The crates that load the library add their own words and repeat its name.
    let reason = reason.trim_start_matches("a libloading error occurred: ");
    let reason = reason.trim_start_matches(&format!("{library}: "));
    HostError::Unavailable(format!(
        "cannot load NVIDIA's management library {library}: {reason}; is the driver installed?"
    ))
}

/// The error when the NVML library is installed but the driver is not loaded.
pub fn driver_not_loaded() -> HostError {
    HostError::Unavailable(
        "NVIDIA's driver is not loaded: run `nvidia-smi`, which should list your GPUs, and load or reinstall the driver".to_owned(),
    )
}

/// The error when NVML rejects a request; `what` is the requested action, such as `count the GPUs`.
pub fn request_failed(what: impl Into<String>) -> impl FnOnce(NvmlError) -> HostError {
    let what = what.into();
    move |error| HostError::Failed {
        library: "NVML",
        what,
        reason: error.to_string(),
    }
}

/// Converts an error of NVML when a device is opened.
pub fn open_error(id: &DeviceId, error: NvmlError) -> OpenError {
    let (device, reason) = (id.clone(), error.to_string());
    match error {
        // NVML reports text that does not look like a UUID as an invalid argument.
        NvmlError::NotFound | NvmlError::InvalidArg => OpenError::NotFound { device, reason },
        NvmlError::NoPermission => OpenError::Denied { device, reason },
        NvmlError::GpuLost => OpenError::Lost {
            name: device.to_string(),
        },
        _ => OpenError::Failed { device, reason },
    }
}

/// Converts an error of NVML when a sensor is read.
pub fn read_error(sensor: SensorKind, error: NvmlError) -> ReadError {
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

/// Converts an error of NVML when a knob is set.
pub fn write_error(knob: Knob, error: NvmlError) -> WriteError {
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
