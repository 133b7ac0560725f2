//! Why a study cannot be kept or read.

use std::path::{Path, PathBuf};

/// Why a study cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No study in a folder.
    #[error("there is no study in {}: `sweetspot study list` shows those that there are", .0.display())]
    Missing(PathBuf),
    /// A study where a new one was to be.
    #[error("there is a study in {} already: name another folder with --study, or go on with it with --resume", .0.display())]
    Exists(PathBuf),
    /// Something else where a new one was to be.
    #[error("{} is not empty: a study needs a folder of its own, name another with --study", .0.display())]
    NotEmpty(PathBuf),
    /// Another process is at it.
    #[error("another process is working on the study in {}: wait for it, or end it", .0.display())]
    Busy(PathBuf),
    /// A database of another program.
    #[error("{} is not the database of a study", .0.display())]
    Foreign(PathBuf),
    /// Of a later or earlier program.
    #[error("the study in {} has schema {version}, and this program reads {}: use the version of sweetspot that made it", .folder.display(), super::SCHEMA)]
    Version {
        /// Where.
        folder: PathBuf,
        /// Which.
        version: i32,
    },
    /// Something in it is not as it should be.
    #[error("the study in {} is damaged: {problem}", .folder.display())]
    Damaged {
        /// Where.
        folder: PathBuf,
        /// What.
        problem: String,
    },
    /// Its folder.
    #[error("the study in {}: {problem}", .folder.display())]
    Folder {
        /// Where.
        folder: PathBuf,
        /// What the system says.
        problem: std::io::Error,
    },
    /// Its database.
    #[error("the study in {}: {problem}{}", .folder.display(), remedy(.problem))]
    Database {
        /// Where.
        folder: PathBuf,
        /// What SQLite says.
        problem: rusqlite::Error,
    },
    /// Two that do not belong together.
    #[error("{} cannot be merged with {}: {problem}", .one.display(), .other.display())]
    Merge {
        /// One.
        one: PathBuf,
        /// The other.
        other: PathBuf,
        /// Why.
        problem: String,
    },
}

/// What to do about what SQLite says.
fn remedy(problem: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode::{DatabaseBusy, DiskFull, ReadOnly, SystemIoFailure};
    match problem.sqlite_error_code() {
        Some(DiskFull | SystemIoFailure) => "; make room on its disk",
        Some(DatabaseBusy) => "; another program holds it: close that",
        Some(ReadOnly) => "; is the folder still there, and may you write to it?",
        _ => "",
    }
}

impl StoreError {
    pub(super) fn folder(folder: &Path, problem: std::io::Error) -> Self {
        Self::Folder {
            folder: folder.to_owned(),
            problem,
        }
    }

    pub(super) fn database(folder: &Path, problem: rusqlite::Error) -> Self {
        Self::Database {
            folder: folder.to_owned(),
            problem,
        }
    }

    pub(super) fn damaged(folder: &Path, problem: impl std::fmt::Display) -> Self {
        Self::Damaged {
            folder: folder.to_owned(),
            problem: problem.to_string(),
        }
    }
}
