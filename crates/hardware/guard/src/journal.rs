//! The journal: the settings of devices before a lease, on disk.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, Knob, Settings};

use crate::owner::{Owner, boot_id};

const JOURNAL_VERSION: u32 = 1;

/// The folder of journals and locks.
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

/// An error of a journal. It is sent from the guard to its client, so paths are text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum JournalError {
    /// Another process holds the device.
    #[error("{device} is held by {owner}: wait for it to end")]
    Held {
        /// The requested device.
        device: DeviceId,
        /// The process that holds it.
        owner: String,
    },
    /// The journal's folder cannot be used.
    #[error("the journal in {folder}: {reason}{}", permission_advice(*.denied))]
    Disk {
        /// The journal's folder.
        folder: String,
        /// Whether the caller has no permission to use the folder.
        denied: bool,
        /// The system's explanation.
        reason: String,
    },
    /// A journal cannot be read.
    #[error(
        "the journal {path} is damaged ({reason}): check the device's settings, then delete the file"
    )]
    Damaged {
        /// The journal's file.
        path: String,
        /// The error with its content.
        reason: String,
    },
}

impl JournalError {
    /// Whether the caller has no permission to use the journal's folder.
    pub const fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Disk { denied: true, .. })
    }
}

/// The settings of a device before the lease, and the knobs changed since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub version: u32,
    pub owner: Owner,
    pub device: DeviceId,
    pub name: String,
    /// The settings before the lease, as far as the device can report them.
    pub saved: Settings,
    pub touched: Vec<Knob>,
}

/// A device that was left changed.
#[derive(Clone, Debug, PartialEq)]
pub struct UnrestoredDevice {
    /// The device's identity.
    pub device: DeviceId,
    /// The device's product name.
    pub name: String,
    /// The process that changed it.
    pub owner: Owner,
    /// Whether it was changed since the last boot: a reboot resets the settings.
    pub is_this_boot: bool,
}

/// The exclusive right to set a device, for as long as the value lives; the kernel frees it on SIGKILL.
#[derive(Debug)]
pub(crate) struct Claim {
    _lock: File,
}

impl Journal {
    /// Opens the folder, and creates it if needed. Only its owner can write to it.
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

    /// Claims a device, or reports the process that holds it.
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

    /// Writes an entry; it is on disk durably when this returns.
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

    /// Writes the entry, or removes it if no knob is changed.
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
                reason: format!("it is about {}, not {device}", entry.device),
            }),
            entry => Ok(entry),
        }
    }

    /// Removes a device's entry, once its settings are restored.
    pub(crate) fn remove(&self, device: &DeviceId) -> Result<(), JournalError> {
        match std::fs::remove_file(self.path(device, "journal")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.disk_error(error)),
            _ => Ok(()),
        }
    }

    /// The devices that guards which have ended left changed, and journals that cannot be read. Devices that
    /// are held now are not among them.
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
                Ok(Some(entry)) if !self.is_held(&entry.device) => {
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

    fn is_held(&self, device: &DeviceId) -> bool {
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
        return Err(damaged(format!("version {}", entry.version)));
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
