//! What can go wrong with a link, by what its user can do about it.

use std::io;
use std::path::PathBuf;

/// A link, or one file of it, that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The folder could not be made, opened or listed.
    #[error(
        "cannot use the link folder {}: {source}; give a folder in shared memory that you can write to",
        folder.display()
    )]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder belongs to somebody else, or others may write to it.
    #[error(
        "the link folder {} is not yours alone: make it yours with mode 0700, or give another",
        folder.display()
    )]
    NotPrivate {
        /// The folder.
        folder: PathBuf,
    },
    /// Another tool reads the folder.
    #[error(
        "the link folder {} is in use by another sweetspot: give each a folder of its own",
        folder.display()
    )]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// A workload was given a folder that no tool reads.
    #[error(
        "no tool reads the link folder {} (it has no control file): start the workload with sweetspot",
        folder.display()
    )]
    NoTool {
        /// The folder.
        folder: PathBuf,
    },
    /// A file could not be made, read or written.
    #[error("cannot use {}: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what its name says.
    #[error("{} is not a link file that can be read: {why}; it is left out", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
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
        /// Its version.
        found: u32,
        /// The version of this program.
        known: u32,
    },
    /// A ring of an earlier boot: its times mean nothing now.
    #[error("{} is from another boot of this machine; remove it", file.display())]
    OtherBoot {
        /// The file.
        file: PathBuf,
    },
    /// A ring that was read so far has a record that nobody can have written so.
    #[error("{} is damaged at record {record}: {why}; what follows in it is not read", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The number of the record, from 0.
        record: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// More rings than can be followed; ones that wait are taken when others end.
    #[error(
        "too many rings in {}: {limit} are followed, others wait; mark phases from fewer threads",
        folder.display()
    )]
    TooManyRings {
        /// The folder.
        folder: PathBuf,
        /// How many are followed.
        limit: usize,
    },
}
