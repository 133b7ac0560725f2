//! Checks that nobody but root can change a file.
//!
//! The service loads a library and reads a policy as root. Whoever can write to such a file, or to a folder that leads
//! to it, can do what root can. So a path is followed one component at a time, each opened relative to the one before
//! it and checked once it is open. Nobody can exchange a component between its check and its use.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

mod error;
#[cfg(test)]
mod tests;

pub use error::OwnershipError;

/// The user id of root.
const ROOT: u32 = 0;

/// The number of symbolic links in a path after which the kernel gives up as well.
const MAX_LINKS: u32 = 40;

/// The bits of a mode that let the group or others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Checks that nobody but root can change the file or folder at `path`.
///
/// It must belong to root and must not be writable by its group or by others, and so must every folder above it. The
/// same holds for every folder that a symbolic link on the way leads through. A folder in which everybody may create
/// files, such as /tmp, is rejected although its sticky bit protects existing files.
pub fn require_root_owned(path: &Path) -> Result<(), OwnershipError> {
    let absolute =
        std::path::absolute(path).map_err(|error| OwnershipError::unreadable(path, error))?;
    require_owned(Path::new("/"), &absolute, ROOT)
}

/// Checks that nobody but `owner` can change the file or folder at `path`, where `base` takes the place of `/`: the
/// check begins at `base`, and absolute symbolic links start there too.
pub(crate) fn require_owned(base: &Path, path: &Path, owner: u32) -> Result<(), OwnershipError> {
    let mut walk = Walk::begin(base, path, owner)?;
    while let Some(name) = walk.pending.pop() {
        walk.step(&name)?;
    }
    Ok(())
}

/// A path that is followed one component at a time.
struct Walk<'a> {
    /// The path that is checked, for error messages.
    target: &'a Path,
    owner: u32,
    /// The open folders from the base to the current one, with their paths.
    opened: Vec<(OwnedFd, PathBuf)>,
    /// The components that are still to be followed, the next one last.
    pending: Vec<OsString>,
    links: u32,
}

impl<'a> Walk<'a> {
    /// Opens and checks the base of a path.
    fn begin(base: &Path, target: &'a Path, owner: u32) -> Result<Self, OwnershipError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(base, flags, Mode::empty())
            .map_err(|error| OwnershipError::unreadable(base, error))?;
        let stat =
            rustix::fs::fstat(&folder).map_err(|error| OwnershipError::unreadable(base, error))?;
        let mut walk = Self {
            target,
            owner,
            opened: vec![(folder, base.to_owned())],
            pending: Vec::new(),
            links: 0,
        };
        walk.check(base, &stat)?;
        walk.push(target);
        Ok(walk)
    }

    /// Adds the components of a path in front of those that are still to be followed.
    fn push(&mut self, path: &Path) {
        let names = path.components().filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
        let names: Vec<OsString> = names.collect();
        self.pending.extend(names.into_iter().rev());
    }

    /// Follows one component.
    fn step(&mut self, name: &OsStr) -> Result<(), OwnershipError> {
        if name == ".." {
            // The parent of the base is the base, as in the kernel.
            if self.opened.len() > 1 {
                self.opened.pop();
            }
            return Ok(());
        }
        let Some((folder, folder_path)) = self.opened.last() else {
            return Ok(());
        };
        let path = folder_path.join(name);
        let unreadable = |error: Errno| OwnershipError::unreadable(&path, error);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(folder, name, flags, Mode::empty()).map_err(unreadable)?;
        let stat = rustix::fs::fstat(&opened).map_err(unreadable)?;
        match FileType::from_raw_mode(stat.st_mode) {
            // Only who can write to its folder can exchange a link, and that folder is checked.
            FileType::Symlink => {
                self.links += 1;
                if self.links > MAX_LINKS {
                    return Err(unreadable(Errno::LOOP));
                }
                let text = rustix::fs::readlinkat(&opened, "", Vec::new()).map_err(unreadable)?;
                let text = PathBuf::from(OsString::from_vec(text.into_bytes()));
                if text.is_absolute() {
                    self.opened.truncate(1);
                }
                self.push(&text);
                return Ok(());
            }
            FileType::Directory => {}
            _ if !self.pending.is_empty() => return Err(unreadable(Errno::NOTDIR)),
            _ => {}
        }
        self.check(&path, &stat)?;
        self.opened.push((opened, path));
        Ok(())
    }

    /// Checks the owner and the mode of one file or folder on the way.
    fn check(&self, path: &Path, stat: &Stat) -> Result<(), OwnershipError> {
        if stat.st_uid != self.owner {
            return Err(OwnershipError::ForeignOwner {
                path: path.to_owned(),
                target: self.target.to_owned(),
                found: stat.st_uid,
                expected: self.owner,
            });
        }
        if stat.st_mode & WRITABLE_BY_OTHERS != 0 {
            return Err(OwnershipError::Writable {
                path: path.to_owned(),
                target: self.target.to_owned(),
                mode: permissions(stat),
            });
        }
        Ok(())
    }
}

/// The permission bits of a file, without its type.
fn permissions(stat: &Stat) -> u32 {
    stat.st_mode & 0o7777
}

/// Opens the folder at `path`, which must belong to root and must not have a wider mode than `mode`, and creates it
/// if it is missing.
///
/// A symbolic link in its place is rejected, and so is a folder above it in which others can exchange it. Use the
/// result, not the path, where nobody but root may exchange the folder afterwards.
pub fn private_folder(path: &Path, mode: u32) -> Result<OwnedFd, OwnershipError> {
    private_folder_of(path, mode, ROOT)
}

/// Does the same as [`private_folder`] for a folder that must belong to `owner`.
pub(crate) fn private_folder_of(
    path: &Path,
    mode: u32,
    owner: u32,
) -> Result<OwnedFd, OwnershipError> {
    let unreadable = |error: Errno| OwnershipError::unreadable(path, error);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(unreadable(Errno::INVAL));
    };
    let parent = match parent {
        empty if empty.as_os_str().is_empty() => Path::new("."),
        parent => parent,
    };
    let folder = open_parent(parent, path, owner)?;
    let was_made = match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(mode)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(unreadable(error)),
    };
    // This check gives the better message; the one of the open folder is the one that counts.
    let found = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(unreadable)?;
    // A new folder may have bits of its parent, which are removed below.
    let allowed = if was_made { 0o7777 } else { mode };
    check_private(path, &found, allowed, owner)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&folder, name, flags, Mode::empty()).map_err(unreadable)?;
    let stat = rustix::fs::fstat(&opened).map_err(unreadable)?;
    check_private(path, &stat, allowed, owner)?;
    if was_made {
        // The process's umask and the parent's set-group-id bit do not apply.
        rustix::fs::fchmod(&opened, Mode::from_raw_mode(mode)).map_err(unreadable)?;
    }
    Ok(opened)
}

/// Opens the folder above `path`, in which only root, `owner` and, thanks to a sticky bit, nobody else can exchange it.
fn open_parent(parent: &Path, path: &Path, owner: u32) -> Result<OwnedFd, OwnershipError> {
    let unreadable = |error: Errno| OwnershipError::unreadable(parent, error);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(CWD, parent, flags, Mode::empty()).map_err(unreadable)?;
    let stat = rustix::fs::fstat(&folder).map_err(unreadable)?;
    if stat.st_uid != owner && stat.st_uid != ROOT {
        return Err(OwnershipError::ForeignOwner {
            path: parent.to_owned(),
            target: path.to_owned(),
            found: stat.st_uid,
            expected: owner,
        });
    }
    let mode = permissions(&stat);
    let sticky = 0o1000;
    // The group may write: on some systems /var/log belongs to the group of the system's logger.
    if mode & 0o002 != 0 && mode & sticky == 0 {
        return Err(OwnershipError::Writable {
            path: parent.to_owned(),
            target: path.to_owned(),
            mode,
        });
    }
    Ok(folder)
}

/// Checks that a file is a folder that belongs to `owner` and whose mode has no bit that is not in `mode`.
fn check_private(path: &Path, stat: &Stat, mode: u32, owner: u32) -> Result<(), OwnershipError> {
    let path = path.to_owned();
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(OwnershipError::NotAFolder { path });
    }
    if stat.st_uid != owner {
        return Err(OwnershipError::ForeignFolder {
            path,
            found: stat.st_uid,
            expected: owner,
        });
    }
    let found = permissions(stat);
    if found & !mode != 0 {
        return Err(OwnershipError::WiderMode {
            path,
            found,
            allowed: mode,
        });
    }
    Ok(())
}
