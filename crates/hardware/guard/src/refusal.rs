//! The reasons why a guard refuses a request, as they are sent to the client.

use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, OpenError, ReadError, WriteError};

use crate::journal::JournalError;
use crate::owner::Owner;

/// The reason why a guard refuses a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The client was interrupted: its devices are restored, and settings are no longer accepted.
    #[error("interrupted")]
    Interrupted,
    /// The client has not leased this device.
    #[error("{0} is not leased")]
    NotLeased(DeviceId),
    /// The present power cap is unknown, so it could not be restored.
    #[error("{0}: the power cap cannot be read, so it could not be restored later")]
    UnknownPowerCap(DeviceId),
    /// The journal cannot be written, or another process holds the device.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The device cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The device's present settings cannot be read.
    #[error("{name}: {error}")]
    Read {
        /// The device's product name.
        name: String,
        /// The backend's error.
        error: ReadError,
    },
    /// The device rejected a setting.
    #[error("{name}: {error}")]
    Write {
        /// The device's product name.
        name: String,
        /// The backend's error.
        error: WriteError,
    },
    /// The earlier settings could not be restored.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// A process of the workload survived SIGKILL.
    #[error("a process of the command cannot be killed: it is blocked in a device driver")]
    WorkloadRemains,
}

impl Refusal {
    /// Whether root would have the missing permission.
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Journal(error) => error.is_permission_denied(),
            Self::Open(error) => error.is_permission_denied(),
            Self::Read { error, .. } => error.is_permission_denied(),
            Self::Write { error, .. } => error.is_permission_denied(),
            Self::Restore(error) => error.is_permission_denied(),
            Self::Interrupted
            | Self::NotLeased(_)
            | Self::UnknownPowerCap(_)
            | Self::WorkloadRemains => false,
        }
    }
}

/// The reason why the settings before a lease could not be restored. The journal keeps them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum RestoreError {
    /// The journal cannot be read or removed, or another process holds the device.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The device cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The device rejected the earlier settings.
    #[error(
        "{name} ({device}): {}; its settings could not be put back: try `sweetspot restore`",
        joined(errors)
    )]
    Write {
        /// The device's identity.
        device: DeviceId,
        /// The device's product name.
        name: String,
        /// The backend's error for each knob.
        errors: Vec<WriteError>,
    },
}

impl RestoreError {
    /// Whether root would have the missing permission.
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Journal(error) => error.is_permission_denied(),
            Self::Open(error) => error.is_permission_denied(),
            Self::Write { errors, .. } => errors.iter().any(WriteError::is_permission_denied),
        }
    }
}

fn joined(errors: &[WriteError]) -> String {
    let errors: Vec<String> = errors.iter().map(WriteError::to_string).collect();
    errors.join(", ")
}

/// The result of restoring settings that an earlier guard left changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestoreOutcome {
    /// The settings had been restored already.
    AlreadyRestored {
        /// The device's product name.
        name: String,
    },
    /// The settings were restored.
    Restored {
        /// The device's product name.
        name: String,
        /// The process that left them changed.
        owner: Owner,
    },
    /// The settings were changed before the last reboot, which reset them: nothing was written.
    EarlierBoot {
        /// The device's product name.
        name: String,
    },
}

impl std::fmt::Display for RestoreOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AlreadyRestored { name } => write!(f, "{name} is already restored"),
            Self::Restored { name, owner } => {
                write!(f, "{name} was left changed by {owner} and is restored now")
            }
            Self::EarlierBoot { name } => write!(
                f,
                "{name} was left changed before the last reboot, which reset it"
            ),
        }
    }
}
