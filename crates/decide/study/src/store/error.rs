//! Errors of the store of a study.

use std::path::{Path, PathBuf};

/// Why a study cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder contains no study.
    #[error("there is no study in {}: `sweetspot study list` shows the studies", .0.display())]
    Missing(PathBuf),
    /// The folder for a new study already contains a study.
    #[error("there is a study in {} already: use another folder, or resume the study", .0.display())]
    Exists(PathBuf),
    /// The folder for a new study contains other files.
    #[error("{} is not empty: use a new or empty folder for the study", .0.display())]
    NotEmpty(PathBuf),
    /// Another process is working on the study.
    #[error("another process is working on the study in {}: wait for it, or end it", .0.display())]
    Busy(PathBuf),
    /// The database belongs to another program.
    #[error("{} is not the database of a study: use another folder", .0.display())]
    Foreign(PathBuf),
    /// The study was created by another version of the program, which stored it differently.
    #[error("the study in {} has schema {version}, and this program reads {}: use the version of sweetspot that made it", .folder.display(), super::SCHEMA)]
    Version {
        /// The folder of the study.
        folder: PathBuf,
        /// The schema version of the study's database.
        version: i32,
    },
    /// A part of the study is missing or invalid.
    #[error("the study in {} is damaged: {problem}", .folder.display())]
    Damaged {
        /// The folder of the study.
        folder: PathBuf,
        /// What is missing or invalid.
        problem: String,
    },
    /// The folder cannot be read or written.
    #[error("cannot access the study in {}: {problem}", .folder.display())]
    Folder {
        /// The folder of the study.
        folder: PathBuf,
        /// The error of the operating system.
        problem: std::io::Error,
    },
    /// The database cannot be read or written.
    #[error("cannot access the study in {}: {problem}{}", .folder.display(), remedy(.problem))]
    Database {
        /// The folder of the study.
        folder: PathBuf,
        /// The error that SQLite returned.
        problem: rusqlite::Error,
    },
    /// The folder has the result of a run of another study.
    #[error("{} is the result of another study: move it away", .0.display())]
    OtherStudy(PathBuf),
    /// Two studies cannot be merged.
    #[error("{} cannot be merged with {}: {problem}", .one.display(), .other.display())]
    Merge {
        /// The folder of the first study.
        one: PathBuf,
        /// The folder of the other study.
        other: PathBuf,
        /// Why the two studies cannot be merged.
        problem: String,
    },
}

/// What the user can do about an SQLite error, as the end of a message; empty if nothing is known.
fn remedy(problem: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode::{DatabaseBusy, DiskFull, ReadOnly, SystemIoFailure};
    match problem.sqlite_error_code() {
        Some(DiskFull | SystemIoFailure) => "; free space on its disk",
        Some(DatabaseBusy) => "; another program has the database open: close that program",
        Some(ReadOnly) => "; check that the folder exists and that you may write to it",
        _ => "",
    }
}

impl StoreError {
    /// Creates the error that the folder cannot be read or written.
    pub(super) fn folder(folder: &Path, problem: std::io::Error) -> Self {
        Self::Folder {
            folder: folder.to_owned(),
            problem,
        }
    }

    /// Creates the error that the database cannot be read or written.
    pub(super) fn database(folder: &Path, problem: rusqlite::Error) -> Self {
        Self::Database {
            folder: folder.to_owned(),
            problem,
        }
    }

    /// Creates the error that a part of the study is missing or invalid.
    pub(super) fn damaged(folder: &Path, problem: impl std::fmt::Display) -> Self {
        /// The maximum length of the problem: it may quote what is in the file.
        const MAX_CHARACTERS: usize = 300;
        let mut problem = problem.to_string();
        if let Some((end, _)) = problem.char_indices().nth(MAX_CHARACTERS) {
            problem.truncate(end);
            problem += "...";
        }
        Self::Damaged {
            folder: folder.to_owned(),
            problem,
        }
    }
}
