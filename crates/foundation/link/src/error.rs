//! Errors of the shared-memory link to the workload, grouped by what the user can do about them.

use std::io;
use std::path::PathBuf;

/// The reason why the link to the workload, or one of its files, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The link folder could not be created, opened or listed.
    #[error(
        "cannot use the link folder {}: {source}; give a folder in shared memory that you can write to",
        folder.display()
    )]
    Folder {
        /// The folder of the shared-memory link to the workload.
        folder: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The link folder belongs to another user, or other users can write to it.
    #[error(
        "the link folder {} is not private: make yourself its owner and set mode 0700, or give another folder",
        folder.display()
    )]
    NotPrivate {
        /// The folder of the shared-memory link to the workload.
        folder: PathBuf,
    },
    /// Another sweetspot process uses the link folder.
    #[error(
        "the link folder {} is in use by another sweetspot: give each its own folder",
        folder.display()
    )]
    Busy {
        /// The folder of the shared-memory link to the workload.
        folder: PathBuf,
    },
    /// No sweetspot process reads the folder that [`crate::LINK_VARIABLE`] names.
    #[error(
        "no sweetspot process reads the link folder {} (it has no control file): start the workload with sweetspot",
        folder.display()
    )]
    NoTool {
        /// The folder of the shared-memory link to the workload.
        folder: PathBuf,
    },
    /// A file in the link folder could not be created, read or written.
    #[error("cannot use {}: {source}", file.display())]
    File {
        /// The path of the file.
        file: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A file in the link folder is not a valid ring file or control file.
    #[error("{} is not a valid link file: {why}; it is ignored", file.display())]
    Malformed {
        /// The path of the file.
        file: PathBuf,
        /// The problem with the file, such as "the file is truncated".
        why: &'static str,
    },
    /// The file was written by a program version with another file layout.
    #[error(
        "{} has layout version {found}, this program reads version {known}: install the client that came with it",
        file.display()
    )]
    Version {
        /// The path of the file.
        file: PathBuf,
        /// The layout version of the file.
        found: u32,
        /// The layout version that this program reads.
        known: u32,
    },
    /// A ring file is from an earlier boot, so its times cannot be compared with the present clock.
    #[error("{} is from another boot of this machine; remove it", file.display())]
    OtherBoot {
        /// The path of the ring file.
        file: PathBuf,
    },
    /// A ring file has a record that no client can have written.
    #[error("{} is damaged at record {record}: {why}; the rest of it is ignored", file.display())]
    Damaged {
        /// The path of the ring file.
        file: PathBuf,
        /// The index of the damaged record, counted from 0.
        record: u64,
        /// The problem with the record, such as "the record's kind is unknown".
        why: &'static str,
    },
    /// There are more rings than can be read at once. The others are read when some of these have ended.
    #[error(
        "too many threads write to {}: only {limit} are read at once, the others when some end; mark phases from fewer threads",
        folder.display()
    )]
    TooManyRings {
        /// The folder of the shared-memory link to the workload.
        folder: PathBuf,
        /// The number of rings that are read at once.
        limit: usize,
    },
}
