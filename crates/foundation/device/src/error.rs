//! What can go wrong with a device, by what the caller can do about it.

use serde::{Deserialize, Serialize};

use crate::{DeviceId, Knob, SensorKind};

/// A device that could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum OpenError {
    /// There is no device with this identity: choose one of those that are listed.
    #[error("cannot open {device}: {reason}")]
    NotFound {
        /// The identity that was asked for.
        device: DeviceId,
        /// What the backend says.
        reason: String,
    },
    /// The caller may not use the device: ask for the right.
    #[error("cannot open {device}: {reason}")]
    Denied {
        /// The device that was asked for.
        device: DeviceId,
        /// What the backend says.
        reason: String,
    },
    /// The device was found but is gone: stop.
    #[error("{name}: the device is lost: it no longer answers")]
    Lost {
        /// The product's name, or the identity where the name is unknown.
        name: String,
    },
    /// It may work next time: try again.
    #[error("cannot open {device}: {reason}")]
    Failed {
        /// The device that was asked for.
        device: DeviceId,
        /// What the backend says.
        reason: String,
    },
}

impl OpenError {
    /// Whether the caller lacks the right to use the device.
    pub const fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Denied { .. })
    }
}

/// A reading that was not had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum ReadError {
    /// The device has no such sensor: use another.
    #[error("the device has no {0}")]
    Unsupported(SensorKind),
    /// The caller may not read it: ask for the right.
    #[error("no permission to read {0}")]
    Denied(SensorKind),
    /// The device is gone: stop.
    #[error("the device is lost: it no longer answers")]
    Lost,
    /// A limit that cannot be told.
    #[error("the power limits cannot be read: {0}")]
    Limits(String),
    /// It may work next time: try again.
    #[error("reading {sensor} failed: {reason}")]
    Failed {
        /// Which sensor.
        sensor: SensorKind,
        /// What the backend says.
        reason: String,
    },
}

/// A setting that was not made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum WriteError {
    /// The device has no such knob: choose another.
    #[error("the device has no {0}")]
    Unsupported(Knob),
    /// The caller may not set it: ask for the right.
    #[error("no permission to set {0}: it needs root")]
    Denied(Knob),
    /// The value is not offered: choose one of those named.
    #[error("{knob} {asked} is not offered: {offered}")]
    OutOfRange {
        /// Which knob.
        knob: Knob,
        /// The value asked for, with its unit.
        asked: String,
        /// What is offered, in words.
        offered: String,
    },
    /// The device is gone: stop.
    #[error("the device is lost: it no longer answers")]
    Lost,
    /// Another value was read back than was written: do not trust it.
    #[error("{knob} was set to {written} but reads {read}")]
    NotTaken {
        /// Which knob.
        knob: Knob,
        /// The value written.
        written: String,
        /// The value read back.
        read: String,
    },
    /// It may work next time: try again.
    #[error("setting {knob} failed: {reason}")]
    Failed {
        /// Which knob.
        knob: Knob,
        /// What the backend says.
        reason: String,
    },
}

impl ReadError {
    /// Whether the caller lacks the right to read.
    pub const fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Denied(_))
    }
}

impl WriteError {
    /// Whether the caller lacks the right to set.
    pub const fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Denied(_))
    }

    /// Whether the device was certainly not changed: the value was refused before it was written.
    pub const fn left_unchanged(&self) -> bool {
        matches!(
            self,
            Self::Denied(_) | Self::Unsupported(_) | Self::OutOfRange { .. }
        )
    }
}
