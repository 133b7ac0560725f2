//! Writes files and folders that only their owner can change.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{InstallError, Installation};
use crate::ownership::{private_folder_of, require_owned};

/// Opens the folder at the absolute path `path` below the root, and creates it if needed. Missing folders above it can
/// be read by all.
pub(super) fn make_folder(
    options: &Installation,
    path: &Path,
    mode: u32,
) -> Result<OwnedFd, InstallError> {
    let mut place = options.root.clone();
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let mut names = names.peekable();
    while let Some(name) = names.next() {
        place.push(name);
        if names.peek().is_some() && std::fs::symlink_metadata(&place).is_err() {
            private_folder_of(&place, 0o755, options.owner())?;
        }
    }
    Ok(private_folder_of(&place, mode, options.owner())?)
}

/// Writes a file that all can read and only its owner can change, at the absolute path `path` below the root. The result
/// says whether the file is new or changed.
pub(super) fn install_file(
    options: &Installation,
    path: &str,
    mode: u32,
    content: &[u8],
) -> Result<bool, InstallError> {
    let path = Path::new(path);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(InstallError::file("write", path, Errno::INVAL));
    };
    let folder = make_folder(options, parent, 0o755)?;
    require_owned(&options.root, parent, options.owner())?;
    let failed = |error: io::Error| InstallError::file("write", path, error);
    let file = Destination {
        folder: &folder,
        name: Path::new(name),
        mode,
        owner: options.owner(),
    };
    if file.is_current(content).map_err(failed)? {
        return Ok(false);
    }
    file.replace(content).map_err(failed)?;
    Ok(true)
}

/// A file to write, in an open folder.
struct Destination<'a> {
    folder: &'a OwnedFd,
    name: &'a Path,
    mode: u32,
    owner: u32,
}

impl Destination<'_> {
    /// Whether the file is there with this content, owner and mode.
    fn is_current(&self, content: &[u8]) -> io::Result<bool> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(self.folder, self.name, flags, Mode::empty()) {
            Ok(file) => file,
            // A symbolic link is replaced, whatever it leads to.
            Err(Errno::NOENT | Errno::LOOP) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let stat = rustix::fs::fstat(&file)?;
        let is_right = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_mode & 0o7777 == self.mode
            && stat.st_uid == self.owner
            && u64::try_from(stat.st_size) == Ok(content.len() as u64);
        if !is_right {
            return Ok(false);
        }
        let mut current = Vec::with_capacity(content.len());
        File::from(file).read_to_end(&mut current)?;
        Ok(current == content)
    }

    /// Writes the file under a temporary name and renames it, so that there is always a complete file.
    fn replace(&self, content: &[u8]) -> io::Result<()> {
        let name = format!(".{}.new", self.name.display());
        // A crash may have left one.
        let _ = rustix::fs::unlinkat(self.folder, &name, AtFlags::empty());
        let written = self.write_as(&name, content);
        if written.is_err() {
            let _ = rustix::fs::unlinkat(self.folder, &name, AtFlags::empty());
        }
        written
    }

    /// Writes the file under the name `temporary` and renames it.
    fn write_as(&self, temporary: &str, content: &[u8]) -> io::Result<()> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let private = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(self.folder, temporary, flags, private)?;
        let mut file = File::from(file);
        file.write_all(content)?;
        rustix::fs::fchmod(file.as_fd(), Mode::from_raw_mode(self.mode))?;
        file.sync_all()?;
        rustix::fs::renameat(self.folder, temporary, self.folder, self.name)?;
        rustix::fs::fsync(self.folder)?;
        Ok(())
    }
}

/// Removes a file. The result says whether it was there.
pub(super) fn remove_file(path: &Path) -> Result<bool, InstallError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(InstallError::file("remove", path, error)),
    }
}
