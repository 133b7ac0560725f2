//! Errors of the store of a study.

use std::path::{Path, PathBuf};

/// Why a study cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A folder has no study.
    #[error("there is no study in {}: `sweetspot study list` shows the studies", .0.display())]
    Missing(PathBuf),
    /// The folder of a new study has a study already.
    #[error("there is a study in {} already: use another folder, or resume the study", .0.display())]
    Exists(PathBuf),
    /// The folder of a new study has other files.
    #[error("{} is not empty: use a new or empty folder for the study", .0.display())]
    NotEmpty(PathBuf),
    /// Another process is working on the study.
    #[error("another process is working on the study in {}: wait for it, or end it", .0.display())]
    Busy(PathBuf),
    /// The database belongs to another program.
    #[error("{} is not the database of a study", .0.display())]
    Foreign(PathBuf),
    /// Another version of the program created the study.
    #[error("the study in {} has schema {version}, and this program reads {}: use the version of sweetspot that made it", .folder.display(), super::SCHEMA)]
    Version {
        /// The folder of the study.
        folder: PathBuf,
        /// The version of the schema.
        version: i32,
    },
    /// A part of the study is missing or invalid.
    #[error("the study in {} is damaged: {problem}", .folder.display())]
    Damaged {
        /// The folder of the study.
        folder: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The folder cannot be read or written.
    #[error("the study in {}: {problem}", .folder.display())]
    Folder {
        /// The folder of the study.
        folder: PathBuf,
        /// The error of the operating system.
        problem: std::io::Error,
    },
    /// The database cannot be read or written.
    #[error("the study in {}: {problem}{}", .folder.display(), remedy(.problem))]
    Database {
        /// The folder of the study.
        folder: PathBuf,
        /// The error of SQLite.
        problem: rusqlite::Error,
    },
    /// Two studies cannot be merged.
    #[error("{} cannot be merged with {}: {problem}", .one.display(), .other.display())]
    Merge {
        /// The first study.
        one: PathBuf,
        /// The other study.
        other: PathBuf,
        /// Why they cannot.
        problem: String,
    },
}

/// What the user can do about an error of SQLite.
fn remedy(problem: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode::{DatabaseBusy, DiskFull, ReadOnly, SystemIoFailure};
    match problem.sqlite_error_code() {
        Some(DiskFull | SystemIoFailure) => "; free space on its disk",
        Some(DatabaseBusy) => "; another program has it open: close that program",
        Some(ReadOnly) => "; check that the folder exists and that you may write to it",
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
