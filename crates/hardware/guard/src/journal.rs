//! What was set before, on disk.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, Knob, Settings};

use crate::owner::{Owner, boot_id};

const VERSION: u32 = 1;

/// The folder of journals and locks.
#[derive(Clone, Debug)]
pub struct Journal {
    folder: PathBuf,
}

fn advice(denied: bool) -> &'static str {
    match denied {
        true => {
            "; settings can be changed by root, or by the owner of that folder: use sudo, or --read-only where nothing is to be set"
        }
        false => "",
    }
}

/// Why a journal could not be kept. It travels from the guard to its client, so paths are text here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum JournalError {
    /// Another process sets this device.
    #[error("{device} is held by {owner}: wait for it to end")]
    Held {
        /// The device that was asked for.
        device: DeviceId,
        /// The process that holds it.
        owner: String,
    },
    /// The journal's folder cannot be used.
    #[error("the journal in {folder}: {reason}{}", advice(*.denied))]
    Disk {
        /// The journal's folder.
        folder: String,
        /// Whether the caller lacks the right to use the folder.
        denied: bool,
        /// What the system says.
        reason: String,
    },
    /// A journal cannot be read.
    #[error(
        "the journal {path} is damaged ({reason}): look at the device's settings yourself, then delete the file"
    )]
    Damaged {
        /// The journal's file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl JournalError {
    /// Whether the caller lacks the right to use the journal's folder.
    pub const fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Disk { denied: true, .. })
    }
}

/// What was set on a device before the lease, and which knobs were touched since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub version: u32,
    pub owner: Owner,
    pub device: DeviceId,
    pub name: String,
    /// What was set, as far as the device can tell.
    pub saved: Settings,
    pub touched: Vec<Knob>,
}

/// Something that was left changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    /// On which device.
    pub device: DeviceId,
    /// The device's product name.
    pub name: String,
    /// By whom.
    pub owner: Owner,
    /// In this boot of the machine: otherwise the settings are gone already.
    pub this_boot: bool,
}

/// The exclusive right to set a device, for as long as it lives; the kernel frees it on SIGKILL.
#[derive(Debug)]
pub(crate) struct Claim {
    _lock: File,
}

impl Journal {
    /// In a folder that only its user can write; made where it is not there.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let journal = Self {
            folder: folder.to_owned(),
        };
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder);
        made.map_err(|problem| journal.disk(problem))?;
        Ok(journal)
    }

    fn disk(&self, problem: io::Error) -> JournalError {
        JournalError::Disk {
            folder: self.folder.display().to_string(),
            denied: problem.kind() == io::ErrorKind::PermissionDenied,
            reason: problem.to_string(),
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

    /// Takes the device, or says who has it.
    pub(crate) fn claim(&self, device: &DeviceId, owner: &Owner) -> Result<Claim, JournalError> {
        let path = self.path(device, "lock");
        let mut lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .open(path)
            .map_err(|problem| self.disk(problem))?;
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
        written.map_err(|problem| self.disk(problem))?;
        Ok(Claim { _lock: lock })
    }

    /// On disk, durably, when this returns.
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
        write().map_err(|problem| self.disk(problem))
    }

    /// What is on disk after this is what was touched; where nothing was, there is no journal.
    pub(crate) fn keep(&self, entry: &Entry) -> Result<(), JournalError> {
        match entry.touched.is_empty() {
            true => self.forget(&entry.device),
            false => self.write(entry),
        }
    }

    pub(crate) fn read(&self, device: &DeviceId) -> Result<Option<Entry>, JournalError> {
        let path = self.path(device, "journal");
        match read_entry(&path)? {
            // Two identities may have the same file name.
            Some(entry) if entry.device != *device => Err(JournalError::Damaged {
                path: path.display().to_string(),
                reason: format!("it is about {}, not {device}", entry.device),
            }),
            entry => Ok(entry),
        }
    }

    /// Everything is as it was.
    pub(crate) fn forget(&self, device: &DeviceId) -> Result<(), JournalError> {
        match std::fs::remove_file(self.path(device, "journal")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.disk(error)),
            _ => Ok(()),
        }
    }

    /// What was left changed by guards that are gone, and journals that cannot be read; a device that is
    /// held now is not left.
    pub fn left(&self) -> Result<Vec<Result<Left, JournalError>>, JournalError> {
        let mut left = Vec::new();
        for file in std::fs::read_dir(&self.folder).map_err(|problem| self.disk(problem))? {
            let path = file.map_err(|problem| self.disk(problem))?.path();
            if path.extension().is_none_or(|ending| ending != "journal") {
                continue;
            }
            match read_entry(&path) {
                Ok(Some(entry)) if !self.is_held(&entry.device) => left.push(Ok(Left {
                    this_boot: entry.owner.boot_id == boot_id(),
                    device: entry.device,
                    name: entry.name,
                    owner: entry.owner,
                })),
                Ok(_) => {}
                Err(problem) => left.push(Err(problem)),
            }
        }
        Ok(left)
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
    if entry.version != VERSION {
        return Err(damaged(format!("version {}", entry.version)));
    }
    Ok(Some(entry))
}

impl Entry {
    pub fn new(owner: Owner, device: DeviceId, name: String, saved: Settings) -> Self {
        Self {
            version: VERSION,
            owner,
            device,
            name,
            saved,
            touched: Vec::new(),
        }
    }
}
