//! The journal: files with the settings that devices had before they were changed, to restore them after a crash.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, Knob, Settings};

use crate::owner::{Owner, boot_id};

/// The version of the journal files' format. Version 1 had no list of leases.
const JOURNAL_VERSION: u32 = 2;

/// The largest journal file that is read, in bytes.
const MAX_ENTRY_LENGTH: u64 = 1 << 20;

/// The flags with which files of the journal are opened: a symbolic link or a named pipe in their place is an error.
const NO_LINKS: i32 = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()) as i32;

/// The folder with a journal file and a lock file for each device.
#[derive(Clone, Debug)]
pub struct Journal {
    folder: PathBuf,
}

/// Why a device cannot be locked, or its journal cannot be used. The guard sends this error to its client as
/// JSON, so paths are text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum JournalError {
    /// Another process has leased the device.
    #[error("{device} is in use by {owner}: wait for that process to end")]
    Held {
        /// The device that was to be leased.
        device: DeviceId,
        /// The process that has leased the device: its command line and id.
        owner: String,
    },
    /// The journal's folder cannot be created, read or written.
    #[error("cannot use the journal in {folder}: {reason}")]
    Disk {
        /// The path of the journal's folder.
        folder: String,
        /// Whether the cause is a missing permission to use the folder.
        denied: bool,
        /// The operating system's error message.
        reason: String,
    },
    /// A journal file does not have the expected content.
    #[error(
        "the journal {path} is damaged ({reason}): check the device's settings, then delete the file"
    )]
    Damaged {
        /// The path of the journal file.
        path: String,
        /// The problem with the file's content.
        reason: String,
    },
}

impl JournalError {
    /// Whether the cause is a missing permission to use the journal's folder.
    pub const fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Disk { denied: true, .. })
    }
}

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
    /// The persistence mode before the lease, if it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_persistence: Option<bool>,
    /// The leases of the device; empty in journals of version 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<LeaseRecord>,
}

/// A device whose settings were changed and not restored, because its guard was killed.
#[derive(Clone, Debug, PartialEq)]
pub struct UnrestoredDevice {
    /// The device's identity.
    pub device: DeviceId,
    /// The device's product name.
    pub name: String,
    /// The process that changed the settings.
    pub owner: Owner,
    /// Whether the settings were changed since the last boot. If they were not, the reboot has reset them.
    pub is_this_boot: bool,
}

/// The exclusive right to change a device's settings: a file lock, which lasts until the value is dropped or
/// the process ends.
#[derive(Debug)]
pub(crate) struct Claim {
    _lock: File,
}

impl Journal {
    /// Opens the journal's folder, and creates it if needed. A folder that others could write to is refused: what is in
    /// the journal is written to devices.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let journal = Self {
            folder: folder.to_owned(),
        };
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder);
        made.map_err(|error| journal.disk_error(error))?;
        let found = std::fs::symlink_metadata(folder);
        let found = found.map_err(|error| journal.disk_error(error))?;
        let user = rustix::process::geteuid();
        let is_own = found.uid() == user.as_raw() || user.is_root();
        let problem = match (found.is_dir(), is_own) {
            (false, _) => io::Error::other("it is not a folder"),
            (true, false) => {
                let problem = "it belongs to another user";
                io::Error::new(io::ErrorKind::PermissionDenied, problem)
            }
            (true, true) if found.mode() & 0o022 != 0 => {
                io::Error::other("other users can write to it")
            }
            (true, true) => return Ok(journal),
        };
        Err(journal.disk_error(problem))
    }

    /// The error for a failed operation in the journal's folder.
    fn disk_error(&self, error: io::Error) -> JournalError {
        JournalError::Disk {
            folder: self.folder.display().to_string(),
            denied: error.kind() == io::ErrorKind::PermissionDenied,
            reason: error.to_string(),
        }
    }

    /// The path of a device's file with this ending: its journal or its lock.
    fn path(&self, device: &DeviceId, ending: &str) -> PathBuf {
        let safe = |c: char| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        };
        let name: String = device.as_str().chars().map(safe).collect();
        self.folder.join(format!("{name}.{ending}"))
    }

    /// Locks a device for `owner`. If another process has locked it, the error names that process.
    pub(crate) fn claim(&self, device: &DeviceId, owner: &Owner) -> Result<Claim, JournalError> {
        let path = self.path(device, "lock");
        let mut lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(NO_LINKS)
            .open(path)
            .map_err(|error| self.disk_error(error))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut holder = String::new();
            let _ = lock.read_to_string(&mut holder);
            return Err(JournalError::Held {
                device: device.clone(),
                owner: match holder.trim() {
                    "" => "another process".to_owned(),
                    holder => holder.to_owned(),
                },
            });
        }
        let written = lock
            .set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| lock.write_all(owner.to_string().as_bytes()));
        written.map_err(|error| self.disk_error(error))?;
        Ok(Claim { _lock: lock })
    }

    /// Writes the journal file of a device. The file is on disk when this returns, so it survives a power
    /// failure.
    pub(crate) fn write(&self, entry: &Entry) -> Result<(), JournalError> {
        let path = self.path(&entry.device, "journal");
        let new = self.path(&entry.device, "new");
        let write = || -> io::Result<()> {
            let text = serde_json::to_string_pretty(entry).map_err(io::Error::other)?;
            let mut options = File::options();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.custom_flags(NO_LINKS).open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|error| self.disk_error(error))
    }

    /// Writes the journal file of a device, or removes the file if nothing is changed any more.
    pub(crate) fn update(&self, entry: &Entry) -> Result<(), JournalError> {
        match entry.is_unchanged() {
            true => self.remove(&entry.device),
            false => self.write(entry),
        }
    }

    /// Reads the journal file of a device; `None` if there is none.
    pub(crate) fn read(&self, device: &DeviceId) -> Result<Option<Entry>, JournalError> {
        let path = self.path(device, "journal");
        match read_entry(&path)? {
            // Two identities may map to the same file name.
            Some(entry) if entry.device != *device => Err(JournalError::Damaged {
                path: path.display().to_string(),
                reason: format!("the file describes {}, not {device}", entry.device),
            }),
            entry => Ok(entry),
        }
    }

    /// Removes the journal file of a device, after its settings were restored.
    pub(crate) fn remove(&self, device: &DeviceId) -> Result<(), JournalError> {
        match std::fs::remove_file(self.path(device, "journal")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.disk_error(error)),
            _ => Ok(()),
        }
    }

    /// The devices that a dead guard left changed, and errors for journal files that cannot be read. Devices
    /// that are leased now are left out.
    pub fn unrestored_devices(
        &self,
    ) -> Result<Vec<Result<UnrestoredDevice, JournalError>>, JournalError> {
        let is_left = |entry: &Result<Entry, _>| {
            !entry
                .as_ref()
                .is_ok_and(|entry| self.is_leased(&entry.device))
        };
        let entries = self.entries()?.into_iter().filter(is_left);
        let unrestored = entries.map(|entry| {
            entry.map(|entry| UnrestoredDevice {
                is_this_boot: entry.owner.boot_id == boot_id(),
                device: entry.device,
                name: entry.name,
                owner: entry.owner,
            })
        });
        Ok(unrestored.collect())
    }

    /// The contents of all journal files that can be read, for a service that resumes its leases.
    pub(crate) fn entries(&self) -> Result<Vec<Result<Entry, JournalError>>, JournalError> {
        let mut entries = Vec::new();
        for file in std::fs::read_dir(&self.folder).map_err(|error| self.disk_error(error))? {
            let path = file.map_err(|error| self.disk_error(error))?.path();
            if path.extension().is_some_and(|ending| ending == "journal") {
                let entry = read_entry(&path).and_then(|entry| match entry {
                    // Restoring this device would not remove this file.
                    Some(entry) if self.path(&entry.device, "journal") != path => {
                        Err(JournalError::Damaged {
                            path: path.display().to_string(),
                            reason: format!("the file describes {}", entry.device),
                        })
                    }
                    entry => Ok(entry),
                });
                entries.extend(entry.transpose());
            }
        }
        Ok(entries)
    }

    /// Whether a process has locked the device now.
    fn is_leased(&self, device: &DeviceId) -> bool {
        let lock = File::open(self.path(device, "lock"));
        lock.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_err())
    }
}

/// Reads and checks a journal file; `None` if it does not exist.
fn read_entry(path: &Path) -> Result<Option<Entry>, JournalError> {
    let damaged = |reason: String| JournalError::Damaged {
        path: path.display().to_string(),
        reason,
    };
    let mut options = File::options();
    let file = match options.read(true).custom_flags(NO_LINKS).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(damaged(error.to_string())),
    };
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Err(damaged("it is not a file".to_owned()));
    }
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
            saved_persistence: None,
            leases: Vec::new(),
        }
    }

    /// Whether nothing of the device is changed.
    pub fn is_unchanged(&self) -> bool {
        self.touched.is_empty() && self.saved_persistence.is_none()
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
