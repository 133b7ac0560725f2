//! The link folder: private and locked by sweetspot. Its files are accessed through one folder descriptor, so
//! symbolic links cannot lead out of it.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::host::Host;
use crate::layout::{CONTROL_FILE, CONTROL_FILE_SIZE, RING_PREFIX, control_bytes};
use crate::map::Map;
use crate::{Control, LinkError, Moment};

/// The beginning of a link folder's name.
const FOLDER_PREFIX: &str = "sweetspot-link-";
/// The name of the control file while it is being written.
const CONTROL_TEMPORARY_FILE: &str = ".control";
/// The maximum number of folder entries that are listed; further ones are ignored.
const MAX_ENTRIES: usize = 16_384;

/// A link folder, locked by this process.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    fd: OwnedFd,
    is_created: bool,
    /// The id of the process that created the folder. Only that process removes it: a forked copy must not.
    owner: u32,
}

impl Folder {
    /// Creates and locks a link folder with a unique name in `parent`.
    pub fn create_in(parent: &Path) -> Result<Self, LinkError> {
        remove_abandoned(parent);
        let mut tries = 0;
        loop {
            tries += 1;
            let (uid, pid) = (rustix::process::geteuid(), std::process::id());
            let nanos = Moment::now().nanos();
            let name = format!("{FOLDER_PREFIX}{}-{pid}-{nanos}", uid.as_raw());
            // Another sweetspot that cleans up may remove the folder before it is locked.
            match Self::open(&parent.join(name)) {
                Err(LinkError::Folder { .. } | LinkError::Busy { .. }) if tries < 3 => {}
                result => return result,
            }
        }
    }

    /// Creates a link folder, or uses an existing one, and locks it.
    pub fn open(path: &Path) -> Result<Self, LinkError> {
        let failed = |error: Errno| LinkError::Folder {
            folder: path.to_owned(),
            source: error.into(),
        };
        let is_created = match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(failed(error)),
        };
        let fd = open_folder(path).map_err(failed)?;
        let stat = rustix::fs::fstat(&fd).map_err(failed)?;
        if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_mode & 0o022 != 0 {
            return Err(LinkError::NotPrivate {
                folder: path.to_owned(),
            });
        }
        match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(LinkError::Busy {
                    folder: path.to_owned(),
                });
            }
            Err(error) => return Err(failed(error)),
        }
        Ok(Self {
            path: path.to_owned(),
            fd,
            is_created,
            owner: std::process::id(),
        })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the control file under a temporary name and renames it, so clients never see a part of it.
    pub fn control(&self, host: &Host, capacity: u32) -> Result<Control, LinkError> {
        let make = || -> io::Result<Control> {
            match rustix::fs::unlinkat(&self.fd, CONTROL_TEMPORARY_FILE, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            // Clients only read the control file.
            let file = rustix::fs::openat(&self.fd, CONTROL_TEMPORARY_FILE, flags, Mode::RUSR)?;
            let file = File::from(file);
            file.write_all_at(&control_bytes(host, capacity), 0)?;
            let map = Map::writable(&file, CONTROL_FILE_SIZE)?;
            rustix::fs::renameat(&self.fd, CONTROL_TEMPORARY_FILE, &self.fd, CONTROL_FILE)?;
            Ok(Control(map))
        };
        make().map_err(|source| LinkError::File {
            file: self.path.join(CONTROL_FILE),
            source,
        })
    }

    /// The names of the ring files in the folder.
    pub fn rings(&self) -> Result<Vec<CString>, LinkError> {
        let mut rings = Vec::new();
        let listed = for_each_entry(&self.fd, |name| {
            if name.to_bytes().starts_with(RING_PREFIX.as_bytes()) {
                rings.push(name.to_owned());
            }
        });
        match listed {
            Ok(()) => Ok(rings),
            Err(error) => Err(LinkError::Folder {
                folder: self.path.clone(),
                source: error.into(),
            }),
        }
    }

    /// Opens a ring file; `None` if it is not a regular file, because a pipe or a device could block.
    pub fn open_ring(&self, name: &CStr) -> io::Result<Option<File>> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let stat = rustix::fs::fstat(&fd)?;
        let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        Ok((is_regular && stat.st_nlink == 1).then(|| File::from(fd)))
    }

    /// Removes a file from the folder, and returns whether that succeeded.
    pub fn remove(&self, name: &CStr) -> bool {
        rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()).is_ok()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.owner != std::process::id() {
            return;
        }
        // In a folder that existed before, only the link's own files are removed.
        remove_entries(&self.fd, self.is_created);
        if self.is_created {
            let _ = rustix::fs::unlinkat(CWD, &self.path, AtFlags::REMOVEDIR);
        }
    }
}

/// Removes the link folders that killed sweetspot processes have left: those whose lock is free.
fn remove_abandoned(parent: &Path) {
    let Ok(parent) = open_folder(parent) else {
        return;
    };
    let mut abandoned = Vec::new();
    let _ = for_each_entry(&parent, |name| {
        if name.to_bytes().starts_with(FOLDER_PREFIX.as_bytes()) {
            abandoned.push(name.to_owned());
        }
    });
    for name in abandoned {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(fd) = rustix::fs::openat(&parent, &name, flags, Mode::empty()) else {
            continue;
        };
        let is_mine = rustix::fs::fstat(&fd)
            .is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
        if is_mine && rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove_entries(&fd, true);
            let _ = rustix::fs::unlinkat(&parent, &name, AtFlags::REMOVEDIR);
        }
    }
}

/// Opens a folder, but not through a symbolic link.
fn open_folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Calls a function with the name of each entry of a folder.
fn for_each_entry(folder: &OwnedFd, mut with: impl FnMut(&CStr)) -> rustix::io::Result<()> {
    for entry in Dir::read_from(folder)?.take(MAX_ENTRIES) {
        with(entry?.file_name());
    }
    Ok(())
}

/// Removes the files that belong to the link; if `everything` is set, all files and empty folders. Symbolic
/// links are not followed.
fn remove_entries(folder: &OwnedFd, everything: bool) {
    let mut names = Vec::new();
    let _ = for_each_entry(folder, |name| names.push(name.to_owned()));
    for name in names {
        let bytes = name.to_bytes();
        let is_ours = [RING_PREFIX, ".ring-"]
            .iter()
            .any(|prefix| bytes.starts_with(prefix.as_bytes()))
            || bytes == CONTROL_FILE.as_bytes();
        if bytes == b"." || bytes == b".." || !(is_ours || everything) {
            continue;
        }
        if rustix::fs::unlinkat(folder, &name, AtFlags::empty()).is_err() && everything {
            let _ = rustix::fs::unlinkat(folder, &name, AtFlags::REMOVEDIR);
        }
    }
}
