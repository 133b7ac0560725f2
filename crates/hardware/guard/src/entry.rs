//! The content of a journal file.

use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, Knob, Settings, is_same_cap};
use sweetspot_quantity::Watts;

use crate::journal::JournalError;
use crate::owner::Owner;
use crate::private_files::open_to_read;

/// The version of the journal files' format. Version 1 had no list of leases.
const JOURNAL_VERSION: u32 = 2;

/// The largest journal file that is read, in bytes.
const MAX_ENTRY_LENGTH: u64 = 1 << 20;

/// What a lease is for. A device has at most one lease of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeaseKind {
    /// The lease chooses the device's settings.
    #[default]
    Setting,
    /// The lease limits what a setting may be: the budget of a node, or the cap of a scheduler's job.
    Ceiling,
}

/// A lease of a device, as the journal stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeaseRecord {
    pub kind: LeaseKind,
    pub owner: Owner,
    /// The settings that the lease asks for.
    pub settings: Settings,
    /// When the lease began, in seconds since boot.
    pub began_at: u64,
}

/// The content of a journal file: a device's settings from before its first lease, its leases, and the knobs changed
/// since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub version: u32,
    pub owner: Owner,
    pub device: DeviceId,
    pub name: String,
    /// The settings before the lease. Those that the device cannot report are absent.
    pub saved: Settings,
    pub touched: Vec<Knob>,
    /// The power cap that was written last; absent in journals of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_cap: Option<Watts>,
    /// The power cap that is about to be written: after a crash the device has this one or the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cap: Option<Watts>,
    /// The persistence mode before the lease, if it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_persistence: Option<bool>,
    /// Whether the power cap was switched on before it was changed; absent if it cannot be switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_cap_enabled: Option<bool>,
    /// The leases of the device; empty in journals of version 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<LeaseRecord>,
}

/// Reads and checks a journal file; `None` if it does not exist.
pub(crate) fn read_entry(path: &Path) -> Result<Option<Entry>, JournalError> {
    let damaged = |reason: String| JournalError::Damaged {
        path: path.display().to_string(),
        reason,
    };
    let file = match open_to_read(path) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(None),
        Err(error) => return Err(damaged(error.to_string())),
    };
    let mut text = String::new();
    let read = file.take(MAX_ENTRY_LENGTH).read_to_string(&mut text);
    read.map_err(|error| damaged(error.to_string()))?;
    let entry: Entry = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    if !(1..=JOURNAL_VERSION).contains(&entry.version) {
        return Err(damaged(format!(
            "the file's format version {} is unknown",
            entry.version
        )));
    }
    Ok(Some(entry))
}

impl Entry {
    /// Creates the entry of a device of which no knob is changed yet.
    pub fn new(owner: Owner, device: DeviceId, name: String, saved: Settings) -> Self {
        Self {
            version: JOURNAL_VERSION,
            owner,
            device,
            name,
            saved,
            touched: Vec::new(),
            written_cap: None,
            next_cap: None,
            saved_persistence: None,
            saved_cap_enabled: None,
            leases: Vec::new(),
        }
    }

    /// Whether nothing of the device is changed.
    pub fn is_unchanged(&self) -> bool {
        self.touched.is_empty() && self.saved_persistence.is_none()
    }

    /// Whether a power cap that the device has now is one that this program wrote. That is assumed if it is not known
    /// what was written.
    pub fn wrote_cap(&self, now: Watts) -> bool {
        let mut written = [self.written_cap, self.next_cap].into_iter().flatten();
        self.next_cap.is_none() || written.any(|written| is_same_cap(written, now))
    }

    /// What the leases ask of a knob together: the lowest value; `None` if no lease sets it.
    pub fn requested(&self, knob: Knob) -> Settings {
        let settings = || self.leases.iter().map(|lease| lease.settings.only(knob));
        Settings {
            power_cap: lowest(settings().filter_map(|one| one.power_cap)),
            core_clock: lowest(settings().filter_map(|one| one.core_clock)),
            memory_clock: lowest(settings().filter_map(|one| one.memory_clock)),
        }
    }
}

/// The lowest of some values; `None` if there are none.
fn lowest<Q: PartialOrd>(values: impl Iterator<Item = Q>) -> Option<Q> {
    values.reduce(|least, next| if next < least { next } else { least })
}
