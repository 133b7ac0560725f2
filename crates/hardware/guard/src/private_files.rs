//! Opens the files and folders of the journal. What is in them is written to devices, so no other
//! user may be able to change them, and what another user has put in their place must not be followed, overwritten
//! or waited for.

use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;

/// A symbolic link is an error, and a named pipe does not block.
const SAFE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);

/// The permission bits that let others write.
const OTHERS_WRITE: u32 = 0o022;

/// The permission bits that let others do anything.
const OTHERS: u32 = 0o077;

/// Creates a folder that only this user can use. An existing one that others can only read is closed to them.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let folder = open_private_folder(path)?;
    if folder.metadata()?.mode() & OTHERS != 0 {
        folder.set_permissions(Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Opens a folder. One of another user, or one that others can write to, is refused.
pub(crate) fn open_private_folder(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let flags = SAFE.union(OFlags::DIRECTORY);
    let folder = options
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path);
    let folder = folder.map_err(|error| match std::fs::symlink_metadata(path) {
        Ok(found) if !found.is_dir() => io::Error::other("it is not a folder"),
        Ok(found) if !is_own(&found) => other_user(),
        _ => error,
    })?;
    let found = folder.metadata()?;
    if !is_own(&found) {
        return Err(other_user());
    }
    match found.mode() & OTHERS_WRITE {
        0 => Ok(folder),
        _ => Err(io::Error::other("other users can write to it")),
    }
}

/// The error for a folder or a file of another user.
fn other_user() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "it belongs to another user",
    )
}

/// Whether a file belongs to this user. Root may use the files of a user whose simulated GPUs it uses.
fn is_own(found: &Metadata) -> bool {
    let user = geteuid();
    found.uid() == user.as_raw() || user.is_root()
}

/// Opens a file to read it; `None` if there is none.
pub(crate) fn open_to_read(path: &Path) -> io::Result<Option<File>> {
    let mut options = File::options();
    match options
        .read(true)
        .custom_flags(SAFE.bits() as i32)
        .open(path)
    {
        Ok(file) => checked(file).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a file to read and write it, and creates it if needed. Its content stays.
pub(crate) fn open_to_lock(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let file = options
        .mode(0o600)
        .custom_flags(SAFE.bits() as i32)
        .open(path)?;
    let file = checked(file)?;
    // Every user who can read a lock file can lock it.
    if file.metadata()?.mode() & OTHERS != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Creates a file. One that is left from an earlier attempt is replaced, never written to.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// Checks that an open file is a file of this user which others cannot write to.
fn checked(file: File) -> io::Result<File> {
    let found = file.metadata()?;
    let problem = match () {
        () if !found.is_file() => "it is not a file",
        () if !is_own(&found) => return Err(other_user()),
        () if found.mode() & OTHERS_WRITE != 0 => "other users can write to it",
        () if found.nlink() != 1 => "it has another name elsewhere",
        () => return Ok(file),
    };
    Err(io::Error::other(problem))
}
