//! The messages to a privileged process that writes settings for others: one JSON object per line.
//!
//! They can lease devices, apply and restore settings, and release devices. Nothing in them names a file or a command.
//! Whom a lease belongs to is not said here either: the kernel knows who is at the other end of the socket.

use serde::{Deserialize, Serialize};
use sweetspot_device::{AppliedSettings, DeviceId, Settings};

use crate::entry::LeaseKind;
use crate::refusal::{Refusal, RestoreError, RestoreOutcome};

/// The version of these messages, which both sides name first.
pub const SETTINGS_PROTOCOL: u32 = 1;

/// The longest request, in bytes.
pub const MAX_REQUEST_LENGTH: usize = 16 << 10;

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SettingsRequest {
    /// The first request of a connection.
    Hello {
        /// The version of the messages that the client uses.
        version: u32,
        /// The scheduler's job that the connection acts for; only root may name one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<Job>,
    },
    /// Leases devices: all of them, or none.
    Lease {
        /// The devices to lease.
        devices: Vec<DeviceId>,
        /// What the lease is for.
        #[serde(default)]
        kind: LeaseKind,
    },
    /// Applies settings to a leased device.
    Apply {
        /// The device to change.
        device: DeviceId,
        /// The values to set.
        settings: Settings,
    },
    /// Restores a leased device; the lease continues.
    Restore {
        /// The device to restore.
        device: DeviceId,
    },
    /// Asks for the present settings of a leased device.
    Settings {
        /// The device to read.
        device: DeviceId,
    },
    /// Restores and releases all devices of this process or job.
    Release,
    /// Asks for a reply, to check that the process responds.
    Ping,
}

/// A job of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The scheduler's name of the job.
    pub name: String,
    /// The id of the user whom the job belongs to.
    pub uid: u32,
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettingsReply {
    /// The versions agree.
    Hello {
        /// The version of the messages that this side uses.
        version: u32,
    },
    /// The devices are leased.
    Leased {
        /// Settings that were left changed and are restored now.
        notes: Vec<RestoreOutcome>,
    },
    /// The settings are applied.
    Applied(AppliedSettings),
    /// The device is restored.
    Restored,
    /// The present settings.
    Settings(Settings),
    /// The devices are restored and released, except those for which there is an error.
    Released {
        /// What could not be restored.
        problems: Vec<RestoreError>,
    },
    /// The reply to a ping.
    Pong,
    /// The request is refused.
    Refused(Refusal),
}
