//! Why a guard did not do what it was asked, as it travels to the client.

use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, OpenError, ReadError, WriteError};

use crate::journal::JournalError;
use crate::owner::Owner;

/// Why a guard did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The client was interrupted: its devices are back, and nothing is set any more.
    #[error("interrupted")]
    Interrupted,
    /// The client has not leased this device.
    #[error("{0} is not leased")]
    NotLeased(DeviceId),
    /// The present power cap is unknown, so it could not be put back.
    #[error("{0}: the power cap cannot be read, so it could not be put back")]
    UnknownPowerCap(DeviceId),
    /// The journal cannot be kept, or another process holds the device.
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
        /// What the backend says.
        error: ReadError,
    },
    /// The device did not take a setting.
    #[error("{name}: {error}")]
    Write {
        /// The device's product name.
        name: String,
        /// What the backend says.
        error: WriteError,
    },
    /// What was set before could not be put back.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// A process of the workload survives every signal.
    #[error("a process of the command cannot be ended: it waits for a device")]
    WorkloadRemains,
}

impl Refusal {
    /// Whether the guard lacks a right that root would have.
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

/// Why what was set before a lease could not be put back. The journal keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum RestoreError {
    /// The journal cannot be read or removed, or another process holds the device.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The device cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The device did not take what was set before.
    #[error(
        "{name} ({device}): {}; its settings could not be put back: try `sweetspot restore`",
        joined(errors)
    )]
    Write {
        /// The device's identity.
        device: DeviceId,
        /// The device's product name.
        name: String,
        /// What the backend says of each knob.
        errors: Vec<WriteError>,
    },
}

impl RestoreError {
    /// Whether the guard lacks a right that root would have.
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

/// What became of settings that an earlier guard left changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restored {
    /// Nothing was left to do.
    AlreadyAsBefore {
        /// The device's product name.
        name: String,
    },
    /// The settings were put back.
    PutBack {
        /// The device's product name.
        name: String,
        /// The process that left them changed.
        owner: Owner,
    },
    /// They were changed in an earlier boot, which undid it: nothing was written.
    EarlierBoot {
        /// The device's product name.
        name: String,
    },
}

impl std::fmt::Display for Restored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AlreadyAsBefore { name } => write!(f, "{name} is as before already"),
            Self::PutBack { name, owner } => {
                write!(f, "{name} was left changed by {owner}: it is as before now")
            }
            Self::EarlierBoot { name } => write!(
                f,
                "{name} was left changed in an earlier boot of this machine, which undid it"
            ),
        }
    }
}
