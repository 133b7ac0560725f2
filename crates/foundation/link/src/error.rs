//! Errors of a link, grouped by what the user can do about them.

use std::io;
use std::path::PathBuf;

/// A link, or one of its files, that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The folder could not be created, opened or listed.
    #[error(
        "cannot use the link folder {}: {source}; give a folder in shared memory that you can write to",
        folder.display()
    )]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The folder belongs to another user, or other users can write to it.
    #[error(
        "the link folder {} is not private: make yourself its owner and set mode 0700, or give another folder",
        folder.display()
    )]
    NotPrivate {
        /// The folder.
        folder: PathBuf,
    },
    /// Another tool reads the folder.
    #[error(
        "the link folder {} is in use by another sweetspot: give each its own folder",
        folder.display()
    )]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// No tool reads the folder that the workload was given.
    #[error(
        "no tool reads the link folder {} (it has no control file): start the workload with sweetspot",
        folder.display()
    )]
    NoTool {
        /// The folder.
        folder: PathBuf,
    },
    /// A file could not be created, read or written.
    #[error("cannot use {}: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is not a valid ring or control file.
    #[error("{} is not a valid link file: {why}; it is ignored", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The problem.
        why: &'static str,
    },
    /// Client and tool are of different versions.
    #[error(
        "{} has layout version {found}, this program reads version {known}: install the client that came with it",
        file.display()
    )]
    Version {
        /// The file.
        file: PathBuf,
        /// The file's version.
        found: u32,
        /// The version of this program.
        known: u32,
    },
    /// A ring is from an earlier boot, so its times are meaningless.
    #[error("{} is from another boot of this machine; remove it", file.display())]
    OtherBoot {
        /// The file.
        file: PathBuf,
    },
    /// A ring has a record that no client can have written.
    #[error("{} is damaged at record {record}: {why}; the rest of it is ignored", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The index of the record, from 0.
        record: u64,
        /// The problem.
        why: &'static str,
    },
    /// There are more rings than can be read; the others are read when some end.
    #[error(
        "too many rings in {}: {limit} are read, others wait; mark phases from fewer threads",
        folder.display()
    )]
    TooManyRings {
        /// The folder.
        folder: PathBuf,
        /// The number of rings that are read.
        limit: usize,
    },
}
