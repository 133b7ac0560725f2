//! Why a file or folder is not protected from other users.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file or folder is not protected from other users.
#[derive(Debug, thiserror::Error)]
pub enum OwnershipError {
    /// A file or folder does not exist, or its owner cannot be read.
    #[error("cannot check who can change {path}: {error}", path = .path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// A file, or a folder that leads to it, belongs to another user.
    #[error(
        "{path} belongs to {found}, who can replace {target}: run `chown {account} {path}`, or use a copy below folders that belong to {expected}",
        path = .path.display(), target = .target.display(), found = owner_name(*.found), account = account(*.expected), expected = owner_name(*.expected)
    )]
    ForeignOwner {
        /// The file or folder that belongs to another user.
        path: PathBuf,
        /// The path that was to be checked.
        target: PathBuf,
        /// The user id of the owner.
        found: u32,
        /// The user id that the owner must have.
        expected: u32,
    },
    /// A file, or a folder that leads to it, can be changed by its group or by everybody.
    #[error(
        "{path} is writable by {who} (mode {mode:04o}), who can replace {target}: {advice}",
        path = .path.display(), target = .target.display(), who = writers(*.mode), advice = writable_advice(.path, *.mode)
    )]
    Writable {
        /// The file or folder that others can change.
        path: PathBuf,
        /// The path that was to be checked.
        target: PathBuf,
        /// The permission bits of `path`.
        mode: u32,
    },
    /// There is a file or a symbolic link where a folder should be.
    #[error(
        "{path} is not a folder, or is a symbolic link to one: remove it, or replace it with a folder",
        path = .path.display()
    )]
    NotAFolder {
        /// The path of the folder.
        path: PathBuf,
    },
    /// The folder belongs to another user.
    #[error(
        "{path} belongs to {found}: check what is in it, then run `chown -R {account} {path}`",
        path = .path.display(), found = owner_name(*.found), account = account(*.expected)
    )]
    ForeignFolder {
        /// The path of the folder.
        path: PathBuf,
        /// The user id of the owner.
        found: u32,
        /// The user id that the owner must have.
        expected: u32,
    },
    /// More users can use the folder than should.
    #[error(
        "{path} has the mode {found:04o}, but {allowed:04o} is the widest that is safe: run `chmod {allowed:04o} {path}`",
        path = .path.display()
    )]
    WiderMode {
        /// The path of the folder.
        path: PathBuf,
        /// The permission bits of the folder.
        found: u32,
        /// The permission bits that it may have.
        allowed: u32,
    },
}

impl OwnershipError {
    /// The error for a path that cannot be opened or examined.
    pub(super) fn unreadable(path: &Path, error: impl Into<io::Error>) -> Self {
        Self::Unreadable {
            path: path.to_owned(),
            error: error.into(),
        }
    }
}

/// The owner in a command: `root`, or the user id.
fn account(uid: u32) -> String {
    match uid {
        0 => "root".to_owned(),
        uid => uid.to_string(),
    }
}

/// The owner in a sentence.
fn owner_name(uid: u32) -> String {
    match uid {
        0 => "root".to_owned(),
        uid => format!("user {uid}"),
    }
}

/// Those who can write besides the owner.
fn writers(mode: u32) -> &'static str {
    match mode & 0o002 {
        0 => "its group",
        _ => "everybody",
    }
}

/// What to do about a file or folder that others can change. A folder with a sticky bit, such as /tmp, is meant to be
/// writable, so it must stay as it is.
fn writable_advice(path: &Path, mode: u32) -> String {
    match mode & 0o1000 {
        0 => format!(
            "run `chmod go-w {}`, or use a copy below folders that only root can change",
            path.display()
        ),
        _ => "copy it to a folder that only root can change, such as /usr/local/lib".to_owned(),
    }
}
