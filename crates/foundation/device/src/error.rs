//! Errors of devices, grouped by what the caller can do about them.

use serde::{Deserialize, Serialize};

use crate::{DeviceId, Knob, SensorKind};

/// The reason why a device cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum OpenError {
    /// There is no device with this UUID; the caller should choose a listed one.
    #[error("cannot open {device}: {reason}")]
    NotFound {
        /// The UUID of the device that was requested.
        device: DeviceId,
        /// The backend's explanation why the device was not found.
        reason: String,
    },
    /// The process has no permission to use the device; the user must grant it.
    #[error("cannot open {device}: {reason}")]
    Denied {
        /// The UUID of the device that was requested.
        device: DeviceId,
        /// The backend's explanation why access was denied.
        reason: String,
    },
    /// The driver lists the device, but the device no longer answers; retrying does not help.
    #[error("{name}: the device is lost: it no longer answers")]
    Lost {
        /// The product name, or the UUID if the name is unknown.
        name: String,
    },
    /// The request failed for a reason that may be temporary; the caller may try again.
    #[error("cannot open {device}: {reason}")]
    Failed {
        /// The UUID of the device that was requested.
        device: DeviceId,
        /// The backend's explanation why the device cannot be opened.
        reason: String,
    },
}

impl OpenError {
    /// Whether the caller has no permission to use the device.
    pub const fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Denied { .. })
    }
}

/// The reason why a sensor could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum ReadError {
    /// The device has no such sensor; the caller should use another one.
    #[error("the device has no {0}")]
    Unsupported(SensorKind),
    /// The process has no permission to read this sensor; the user must grant it.
    #[error("no permission to read {0}")]
    Denied(SensorKind),
    /// The device no longer answers; retrying does not help.
    #[error("the device is lost: it no longer answers")]
    Lost,
    /// The power limits cannot be read, for this reason.
    #[error("the power limits cannot be read: {0}")]
    Limits(String),
    /// The request failed for a reason that may be temporary; the caller may try again.
    #[error("reading {sensor} failed: {reason}")]
    Failed {
        /// The sensor that could not be read.
        sensor: SensorKind,
        /// The backend's explanation why the sensor cannot be read.
        reason: String,
    },
}

/// The reason why a knob could not be set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum WriteError {
    /// The device has no such knob; the caller should choose another one.
    #[error("the device has no {0}")]
    Unsupported(Knob),
    /// The process has no permission to set this knob; the user must grant it.
    #[error("no permission to set {0}: it needs root")]
    Denied(Knob),
    /// The device does not support the value; `offered` names values that it does.
    #[error("{knob} {asked} is not supported: {offered}")]
    OutOfRange {
        /// The knob whose value is not supported.
        knob: Knob,
        /// The requested value, with its unit.
        asked: String,
        /// A phrase with supported values, such as `choose 100 W to 300 W`.
        offered: String,
    },
    /// The device no longer answers; retrying does not help.
    #[error("the device is lost: it no longer answers")]
    Lost,
    /// The value read back differs from the value written, so the setting cannot be relied on.
    #[error("{knob} was set to {written} but reads {read}")]
    ReadBackDiffers {
        /// The knob whose value could not be verified.
        knob: Knob,
        /// The value that was written, with its unit.
        written: String,
        /// The value that was read back, with its unit.
        read: String,
    },
    /// Persistence mode cannot be changed, for this reason.
    #[error("persistence mode cannot be changed: {0}")]
    Persistence(String),
    /// The request failed for a reason that may be temporary; the caller may try again.
    #[error("setting {knob} failed: {reason}")]
    Failed {
        /// The knob that could not be set.
        knob: Knob,
        /// The backend's explanation why the knob cannot be set.
        reason: String,
    },
}

impl ReadError {
    /// Whether the read failed because the process has no permission.
    pub const fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Denied(_))
    }
}

impl WriteError {
    /// Whether the write failed because the process has no permission.
    pub const fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Denied(_))
    }

    /// Whether the device was certainly not changed: the value was rejected before it was written.
    pub const fn left_unchanged(&self) -> bool {
        matches!(
            self,
            Self::Denied(_) | Self::Unsupported(_) | Self::OutOfRange { .. }
        )
    }
}
