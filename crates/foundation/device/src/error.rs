//! Errors of devices, grouped by what the caller can do about them.

use serde::{Deserialize, Serialize};

use crate::{DeviceId, Knob, SensorKind};

/// The reason why a device cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum OpenError {
    /// There is no device with this identity: choose one of those that are listed.
    #[error("cannot open {device}: {reason}")]
    NotFound {
        /// The identity that was requested.
        device: DeviceId,
        /// The backend's explanation.
        reason: String,
    },
    /// The caller has no permission to use the device: ask for it.
    #[error("cannot open {device}: {reason}")]
    Denied {
        /// The device that was requested.
        device: DeviceId,
        /// The backend's explanation.
        reason: String,
    },
    /// The device was found but no longer answers: stop.
    #[error("{name}: the device is lost: it no longer answers")]
    Lost {
        /// The product's name, or the identity where the name is unknown.
        name: String,
    },
    /// A temporary failure: try again.
    #[error("cannot open {device}: {reason}")]
    Failed {
        /// The device that was requested.
        device: DeviceId,
        /// The backend's explanation.
        reason: String,
    },
}

impl OpenError {
    /// Whether the caller has no permission to use the device.
    pub const fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Denied { .. })
    }
}

/// The reason why a sensor has no reading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum ReadError {
    /// The device has no such sensor: use another.
    #[error("the device has no {0}")]
    Unsupported(SensorKind),
    /// The caller has no permission to read it: ask for it.
    #[error("no permission to read {0}")]
    Denied(SensorKind),
    /// The device no longer answers: stop.
    #[error("the device is lost: it no longer answers")]
    Lost,
    /// The power limits cannot be read.
    #[error("the power limits cannot be read: {0}")]
    Limits(String),
    /// A temporary failure: try again.
    #[error("reading {sensor} failed: {reason}")]
    Failed {
        /// The sensor.
        sensor: SensorKind,
        /// The backend's explanation.
        reason: String,
    },
}

/// The reason why a setting was not made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum WriteError {
    /// The device has no such knob: choose another.
    #[error("the device has no {0}")]
    Unsupported(Knob),
    /// The caller has no permission to set it: ask for it.
    #[error("no permission to set {0}: it needs root")]
    Denied(Knob),
    /// The value is not supported: choose one of those offered.
    #[error("{knob} {asked} is not supported: {offered}")]
    OutOfRange {
        /// The knob.
        knob: Knob,
        /// The requested value, with its unit.
        asked: String,
        /// The supported values, in words.
        offered: String,
    },
    /// The device no longer answers: stop.
    #[error("the device is lost: it no longer answers")]
    Lost,
    /// The value read back differs from the one written: do not rely on it.
    #[error("{knob} was set to {written} but reads {read}")]
    ReadBackDiffers {
        /// The knob.
        knob: Knob,
        /// The value that was written.
        written: String,
        /// The value that was read back.
        read: String,
    },
    /// A temporary failure: try again.
    #[error("setting {knob} failed: {reason}")]
    Failed {
        /// The knob.
        knob: Knob,
        /// The backend's explanation.
        reason: String,
    },
}

impl ReadError {
    /// Whether the caller has no permission to read.
    pub const fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Denied(_))
    }
}

impl WriteError {
    /// Whether the caller has no permission to set.
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
