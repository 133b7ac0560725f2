//! The journal: files with the settings that devices had before they were changed, to restore them after a crash.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, Knob, Settings};

use crate::owner::{Owner, boot_id};

const JOURNAL_VERSION: u32 = 1;

/// The folder that contains a journal file and a lock file for each device.
#[derive(Clone, Debug)]
pub struct Journal {
    folder: PathBuf,
}

fn permission_advice(denied: bool) -> &'static str {
    match denied {
        true => {
            "; settings can be changed by root, or by the owner of that folder: use sudo, or --read-only to change no settings"
        }
        false => "",
    }
}

/// The reason why a device cannot be locked or its journal not be used. The guard sends this to its client, so
/// paths are text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum JournalError {
    /// Another process has leased the device.
    #[error("{device} is in use by {owner}: wait for that process to end")]
    Held {
        /// The requested device.
        device: DeviceId,
        /// The process that has leased the device, as text.
        owner: String,
    },
    /// The journal's folder cannot be created, read or written.
    #[error("cannot use the journal in {folder}: {reason}{}", permission_advice(*.denied))]
    Disk {
        /// The journal's folder.
        folder: String,
        /// Whether the caller has no permission to use the folder.
        denied: bool,
        /// The system's explanation.
        reason: String,
    },
    /// A journal file is not valid.
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
    /// Whether the caller has no permission to use the journal's folder.
    pub const fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Disk { denied: true, .. })
    }
}

/// The content of a journal file: a device's settings before it was leased, and the knobs changed since.
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
    /// Whether the settings were changed since the last boot. If not, the reboot has reset them.
    pub is_this_boot: bool,
}

/// The exclusive right to change a device's settings: a file lock, which lasts until the value is dropped or
/// the process ends.
#[derive(Debug)]
pub(crate) struct Claim {
    _lock: File,
}

impl Journal {
    /// Opens the journal's folder, and creates it if needed. Only its owner can write to it.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let journal = Self {
            folder: folder.to_owned(),
        };
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder);
        made.map_err(|error| journal.disk_error(error))?;
        Ok(journal)
    }

    fn disk_error(&self, error: io::Error) -> JournalError {
        JournalError::Disk {
            folder: self.folder.display().to_string(),
            denied: error.kind() == io::ErrorKind::PermissionDenied,
            reason: error.to_string(),
        }
    }

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

    /// Locks a device for `owner`; if another process has it, the error names that process.
    pub(crate) fn claim(&self, device: &DeviceId, owner: &Owner) -> Result<Claim, JournalError> {
        let path = self.path(device, "lock");
        let mut lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
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

    /// Writes the journal file of a device. When this returns, the file survives a power failure.
    pub(crate) fn write(&self, entry: &Entry) -> Result<(), JournalError> {
        let path = self.path(&entry.device, "journal");
        let new = self.path(&entry.device, "new");
        let write = || -> io::Result<()> {
            let text = serde_json::to_string_pretty(entry).map_err(io::Error::other)?;
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|error| self.disk_error(error))
    }

    /// Writes the journal file of a device, or removes it if no knob is changed.
    pub(crate) fn update(&self, entry: &Entry) -> Result<(), JournalError> {
        match entry.touched.is_empty() {
            true => self.remove(&entry.device),
            false => self.write(entry),
        }
    }

    pub(crate) fn read(&self, device: &DeviceId) -> Result<Option<Entry>, JournalError> {
        let path = self.path(device, "journal");
        match read_entry(&path)? {
            // Two identities may map to the same file name.
            Some(entry) if entry.device != *device => Err(JournalError::Damaged {
                path: path.display().to_string(),
                reason: format!("it describes {}, not {device}", entry.device),
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

    /// The devices whose guard ended without restoring them, and the errors of journal files that cannot be
    /// read. Devices that are leased now are left out.
    pub fn unrestored_devices(
        &self,
    ) -> Result<Vec<Result<UnrestoredDevice, JournalError>>, JournalError> {
        let mut unrestored = Vec::new();
        for file in std::fs::read_dir(&self.folder).map_err(|error| self.disk_error(error))? {
            let path = file.map_err(|error| self.disk_error(error))?.path();
            if path.extension().is_none_or(|ending| ending != "journal") {
                continue;
            }
            match read_entry(&path) {
                Ok(Some(entry)) if !self.is_leased(&entry.device) => {
                    unrestored.push(Ok(UnrestoredDevice {
                        is_this_boot: entry.owner.boot_id == boot_id(),
                        device: entry.device,
                        name: entry.name,
                        owner: entry.owner,
                    }))
                }
                Ok(_) => {}
                Err(error) => unrestored.push(Err(error)),
            }
        }
        Ok(unrestored)
    }

    fn is_leased(&self, device: &DeviceId) -> bool {
        let lock = File::open(self.path(device, "lock"));
        lock.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_err())
    }
}

fn read_entry(path: &Path) -> Result<Option<Entry>, JournalError> {
    let damaged = |reason: String| JournalError::Damaged {
        path: path.display().to_string(),
        reason,
    };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(damaged(error.to_string())),
    };
    let entry: Entry = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    if entry.version != JOURNAL_VERSION {
        return Err(damaged(format!("its version {} is unknown", entry.version)));
    }
    Ok(Some(entry))
}

impl Entry {
    pub fn new(owner: Owner, device: DeviceId, name: String, saved: Settings) -> Self {
        Self {
            version: JOURNAL_VERSION,
            owner,
            device,
            name,
            saved,
            touched: Vec::new(),
        }
    }
}
