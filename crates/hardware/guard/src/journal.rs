//! The journal: files with the settings that devices had before they were changed, to restore them after a crash.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sweetspot_device::DeviceId;

use crate::entry::{Entry, read_entry};
use crate::machine_lock::MachineLock;
use crate::owner::{Owner, boot_id};
use crate::private_files::{
    create_file, create_private_folder, open_private_folder, open_to_lock, open_to_read,
};

/// The longest description of a lock's owner that is read, in bytes.
const MAX_OWNER_LENGTH: u64 = 4096;

/// How long a device may stay locked by a process that is not its owner: a guard whose client has ended is restoring it.
const RESTORE_TIME: Duration = Duration::from_secs(2);

/// The folder with a journal file and a lock file for each device.
#[derive(Clone, Debug)]
pub struct Journal {
    folder: PathBuf,
    /// The scope of the locks that hold for the whole machine; without one only the folder's files are locked.
    scope: Option<String>,
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
    /// The journal says that a device is changed, and a process that did not change it has locked it.
    #[error(
        "unknown whether {device} is restored: its owner {owner} has ended, but another process has locked {path}: find that process with `fuser {path}`, end it, then run `sweetspot restore`"
    )]
    Locked {
        /// The device that the journal describes.
        device: DeviceId,
        /// The process that changed the settings.
        owner: String,
        /// The path of the lock file.
        path: String,
    },
}

impl JournalError {
    /// Whether the cause is a missing permission to use the journal's folder.
    pub const fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Disk { denied: true, .. })
    }
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

/// The exclusive right to change a device's settings: a file lock, and one for the whole machine. Both last until the
/// value is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Claim {
    _lock: File,
    machine: Option<MachineLock>,
}

impl Claim {
    /// The process of another user that has taken the lock for the whole machine, which does not stop root.
    pub fn other_claim(&self) -> Option<&str> {
        match &self.machine {
            Some(MachineLock::Beside(other)) => Some(other),
            _ => None,
        }
    }
}

impl Journal {
    /// Opens the journal's folder, and creates it if needed. A folder that others could write to is refused: what is in
    /// the journal is written to devices.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let journal = Self {
            folder: folder.to_owned(),
            scope: None,
        };
        let created = create_private_folder(folder);
        created.map_err(|error| journal.disk_error(error))?;
        Ok(journal)
    }

    /// Opens the journal in a folder that exists, and does not change the folder: it may have another purpose now.
    pub fn inspect(folder: &Path) -> Result<Self, JournalError> {
        let journal = Self {
            folder: folder.to_owned(),
            scope: None,
        };
        let opened = open_private_folder(folder);
        opened.map_err(|error| journal.disk_error(error))?;
        Ok(journal)
    }

    /// The folder with the journal's files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Locks devices for the whole machine, not only for those who use this folder. `scope` distinguishes devices with
    /// the same identity.
    pub fn locking_machine(mut self, scope: String) -> Self {
        self.scope = Some(scope);
        self
    }

    /// Takes over the journal files of a folder that an earlier version of this program used. A file stays where it is
    /// if it cannot be read, or if its device is locked.
    pub fn take_over(&self, earlier: &Path) {
        if earlier == self.folder || !earlier.is_dir() {
            return;
        }
        let Ok(earlier) = Self::inspect(earlier) else {
            return;
        };
        for entry in earlier.entries().into_iter().flatten().flatten() {
            let owner = Owner::current_process();
            let Ok(_claim) = earlier.claim(&entry.device, &owner) else {
                continue;
            };
            let is_free = matches!(self.read(&entry.device), Ok(None));
            if is_free && self.write(&entry).is_ok() {
                let _ = earlier.remove(&entry.device);
            }
        }
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
        let held = |owner: String| JournalError::Held {
            device: device.clone(),
            owner,
        };
        let lock = open_to_lock(&self.path(device, "lock"));
        let mut lock = lock.map_err(|error| self.disk_error(error))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut holder = String::new();
            let _ = (&mut lock)
                .take(MAX_OWNER_LENGTH)
                .read_to_string(&mut holder);
            return Err(held(match holder.trim() {
                "" => "another process".to_owned(),
                holder => holder.to_owned(),
            }));
        }
        let scope = self.scope.as_ref();
        let machine = scope.map(|scope| MachineLock::take(scope, device));
        let machine = machine
            .transpose()
            .map_err(|error| self.disk_error(error))?;
        if let Some(MachineLock::Held(other)) = machine {
            return Err(held(other));
        }
        let written = lock
            .set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| lock.write_all(owner.to_string().as_bytes()));
        written.map_err(|error| self.disk_error(error))?;
        Ok(Claim {
            _lock: lock,
            machine,
        })
    }

    /// Writes the journal file of a device. The file is on disk when this returns, so it survives a power
    /// failure.
    pub(crate) fn write(&self, entry: &Entry) -> Result<(), JournalError> {
        let path = self.path(&entry.device, "journal");
        let new = self.path(&entry.device, "new");
        let write = || -> io::Result<()> {
            let text = serde_json::to_string_pretty(entry).map_err(io::Error::other)?;
            let mut file = create_file(&new)?;
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

    /// The devices that a dead guard left changed, and errors for journal files that cannot be read. Devices that their
    /// owners have leased now are left out; for one that somebody else has locked there is an error.
    pub fn unrestored_devices(
        &self,
    ) -> Result<Vec<Result<UnrestoredDevice, JournalError>>, JournalError> {
        let entries = self.entries()?.into_iter();
        Ok(entries
            .filter_map(|entry| self.unrestored(entry).transpose())
            .collect())
    }

    /// The device of a journal file, if its owner has not restored it and no longer uses it.
    fn unrestored(
        &self,
        entry: Result<Entry, JournalError>,
    ) -> Result<Option<UnrestoredDevice>, JournalError> {
        let entry = entry?;
        let begun = Instant::now();
        while self.is_locked(&entry.device)? {
            let mut owners = entry.leases.iter().map(|lease| &lease.owner);
            if entry.owner.is_alive() || owners.any(Owner::is_alive) {
                return Ok(None);
            }
            if begun.elapsed() > RESTORE_TIME {
                return Err(JournalError::Locked {
                    path: self.path(&entry.device, "lock").display().to_string(),
                    owner: entry.owner.to_string(),
                    device: entry.device,
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // Its guard may have restored it since the file was read.
        if begun.elapsed() > Duration::from_millis(10) && self.read(&entry.device)?.is_none() {
            return Ok(None);
        }
        Ok(Some(UnrestoredDevice {
            is_this_boot: entry.owner.boot_id == boot_id(),
            device: entry.device,
            name: entry.name,
            owner: entry.owner,
        }))
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
    fn is_locked(&self, device: &DeviceId) -> Result<bool, JournalError> {
        let lock = open_to_read(&self.path(device, "lock"));
        let lock = lock.map_err(|error| self.disk_error(error))?;
        let is_locked = |lock: File| flock(&lock, FlockOperation::NonBlockingLockShared).is_err();
        Ok(lock.is_some_and(is_locked))
    }
}
