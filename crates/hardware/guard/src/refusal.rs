//! The errors that a guard sends to its client when it rejects a request or cannot restore a device.

use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, OpenError, ReadError, WriteError};
use sweetspot_quantity::Watts;

use crate::journal::JournalError;
use crate::owner::Owner;

/// Why a guard refused a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The client was interrupted by a signal. Its devices are restored, and the guard accepts no further
    /// settings.
    #[error("interrupted")]
    Interrupted,
    /// The client has not leased this device.
    #[error("{0} was not reserved before a request to use it")]
    NotLeased(DeviceId),
    /// The present power cap cannot be read. It could not be restored later, so it is not changed.
    #[error(
        "{0}: the present power cap cannot be read, so it is not changed: it could not be restored later"
    )]
    UnknownPowerCap(DeviceId),
    /// Another program has changed the power cap since this one wrote it.
    #[error("{0}: nothing was written")]
    ChangedByOther(CapChange),
    /// The journal cannot be written, or another process has leased the device.
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
        /// The error that the device returned.
        error: ReadError,
    },
    /// The device rejected a setting.
    #[error("{name}: {error}")]
    Write {
        /// The device's product name.
        name: String,
        /// The error that the device returned.
        error: WriteError,
    },
    /// Settings that an earlier guard left changed could not be restored.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The policy does not allow the request; the text says what it allows.
    #[error("{0}")]
    NotAllowed(String),
    /// The service has ended the lease.
    #[error("{device}: the lease ended: {reason}")]
    LeaseEnded {
        /// The device that was leased.
        device: DeviceId,
        /// Why the lease ended, and whether the device is restored.
        reason: String,
    },
    /// The two programs do not use the same messages.
    #[error(
        "the service uses version {service} of its messages and this program version {client}: install the same version of sweetspot for both"
    )]
    OtherVersion {
        /// The version of the messages that the service uses.
        service: u32,
        /// The version of the messages that the client uses.
        client: u32,
    },
    /// The request cannot be read.
    #[error("invalid request: {0}")]
    Invalid(String),
    /// There are too many requests or connections of this user.
    #[error("too many requests at a time: wait a second")]
    TooMany,
    /// The service, or a guard that runs as root, cannot be reached.
    #[error("the process that writes settings as root cannot be reached ({0})")]
    ServiceLost(String),
    /// A process of the workload is still alive after SIGKILL.
    #[error("a process of the command cannot be killed: it is blocked in a device driver")]
    WorkloadRemains,
}

impl Refusal {
    /// Whether the device no longer answers, so that no other setting can be tried.
    pub const fn is_device_lost(&self) -> bool {
        matches!(
            self,
            Self::Read {
                error: ReadError::Lost,
                ..
            } | Self::Write {
                error: WriteError::Lost,
                ..
            }
        )
    }

    /// Whether root's permission is missing for the request.
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
            | Self::ChangedByOther(_)
            | Self::NotAllowed(_)
            | Self::LeaseEnded { .. }
            | Self::OtherVersion { .. }
            | Self::Invalid(_)
            | Self::TooMany
            | Self::ServiceLost(_)
            | Self::WorkloadRemains => false,
        }
    }
}

/// Why a device's settings from before its lease could not be restored. The settings stay in the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum RestoreError {
    /// The journal cannot be read or removed, or another process has leased the device.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The device cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The device rejected the settings that it had before its lease.
    #[error(
        "{name} ({device}): {}; its settings could not be restored: try `sweetspot restore`",
        join_errors(errors)
    )]
    Write {
        /// The device's identity.
        device: DeviceId,
        /// The device's product name.
        name: String,
        /// The errors of the knobs that could not be restored.
        errors: Vec<WriteError>,
    },
    /// Another program has changed the power cap since this one wrote it, so it was left as it is.
    #[error("{0}: it was left as it is")]
    ChangedByOther(CapChange),
    /// The device was restored to what it had when it was leased, which may be a setting of another program.
    #[error(
        "{device} was also leased by {other}: it has the settings again that it had when this command began, but that process may have set them: check with `sweetspot devices`"
    )]
    LeasedByOther {
        /// The device's identity.
        device: DeviceId,
        /// The other process.
        other: String,
    },
    /// The service cannot be asked to restore the devices. It does so by itself when it runs again.
    #[error("{0}; the service restores the settings when it runs again")]
    Service(String),
}

impl RestoreError {
    /// Whether root's permission is missing to restore the device.
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Journal(error) => error.is_permission_denied(),
            Self::Open(error) => error.is_permission_denied(),
            Self::Write { errors, .. } => errors.iter().any(WriteError::is_permission_denied),
            Self::ChangedByOther(_) | Self::LeasedByOther { .. } | Self::Service(_) => false,
        }
    }
}

/// A change of a device's power cap by another program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error(
    "{name} ({device}): another program changed the power cap from {written} to {found}; before this command it was {before}"
)]
pub struct CapChange {
    /// The device's identity.
    pub device: DeviceId,
    /// The device's product name.
    pub name: String,
    /// The cap that this program had written.
    pub written: Watts,
    /// The cap that the device has now.
    pub found: Watts,
    /// The cap from before the first lease.
    pub before: Watts,
}

/// The messages of all errors, separated by commas.
fn join_errors(errors: &[WriteError]) -> String {
    let errors: Vec<String> = errors.iter().map(WriteError::to_string).collect();
    errors.join(", ")
}

/// The result of restoring a device that an earlier guard left changed.
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
        /// The process that changed the settings and did not restore them.
        owner: Owner,
    },
    /// Another program has changed the power cap meanwhile, so it was left as it is.
    ChangedByOther(CapChange),
    /// The settings were changed before the last reboot, which reset them: nothing was written.
    EarlierBoot {
        /// The device's product name.
        name: String,
    },
}

impl std::fmt::Display for RestoreOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AlreadyRestored { name } => {
                write!(f, "the settings of {name} are already restored")
            }
            Self::Restored { name, owner } => {
                write!(
                    f,
                    "the settings of {name}, left changed by {owner}, are now restored"
                )
            }
            Self::ChangedByOther(change) => write!(f, "{change}: it was left as it is"),
            Self::EarlierBoot { name } => write!(
                f,
                "the settings of {name} were left changed before the last reboot, which reset them"
            ),
        }
    }
}
