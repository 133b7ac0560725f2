//! Where a study is kept: a folder with a database and a file of samples for each run.
//!
//! A run is on disk before it counts as done. The database is only ever written by one process, which
//! holds the folder's lock; it may be read at any time.

mod error;
mod merge;
mod read;
mod tasks;
mod write;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, flock};

pub use error::StoreError;
pub use merge::merge;
pub use read::Info;
pub use tasks::{read_plan_file, write_task};

use crate::{Outline, RunRecord};

/// The schema that this program writes and reads.
pub const SCHEMA: i32 = 1;
/// `SWSP`: tells what a database is for.
const APPLICATION: i32 = 0x5357_5350;

const DATABASE: &str = "study.db";
const LOCK: &str = "lock";
const SAMPLES: &str = "samples";
const TASKS: &str = "tasks";
const PLAN: &str = "plan.json";
const UNFINISHED: &str = ".unfinished-";
/// How often a commit is tried while others hold the database, 10 s each.
const PATIENCE: u32 = 60;

/// A study on disk.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    connection: Connection,
    _lock: Option<File>,
}

impl Store {
    /// Makes a new study in a folder that holds none.
    pub fn create(folder: &Path, outline: &Outline) -> Result<Self, StoreError> {
        let fail = |problem| StoreError::folder(folder, problem);
        let database = folder.join(DATABASE);
        if database.exists() {
            return Err(StoreError::Exists(folder.to_owned()));
        }
        if !is_free(folder).map_err(fail)? {
            return Err(StoreError::NotEmpty(folder.to_owned()));
        }
        std::fs::create_dir_all(folder.join(SAMPLES)).map_err(fail)?;
        let lock = lock(folder)?;
        // It takes its name when it is whole.
        let unfinished = folder.join("study.db.new");
        let _ = std::fs::remove_file(&unfinished);
        let made = write::make(&unfinished, outline);
        made.map_err(|problem| StoreError::database(folder, problem))?;
        std::fs::rename(&unfinished, &database).map_err(fail)?;
        tasks::write_plan_file(folder, outline)?;
        sync(folder).map_err(fail)?;
        Self::connect(folder, OpenFlags::SQLITE_OPEN_READ_WRITE, Some(lock))
    }

    /// Opens a study to go on with it; nobody else may be at it.
    pub fn resume(folder: &Path) -> Result<Self, StoreError> {
        let mut store = Self::take(folder)?;
        let samples = folder.join(SAMPLES);
        tidy(&samples);
        // A copy of a study may have been made without them.
        std::fs::create_dir_all(&samples).map_err(|problem| StoreError::Folder {
            folder: samples.clone(),
            problem,
        })?;
        if !folder.join(PLAN).exists() {
            tasks::write_plan_file(folder, &store.outline()?)?;
        }
        store.gather()?;
        Ok(store)
    }

    /// Opens a study to remove it; nobody else may be at it.
    pub fn take(folder: &Path) -> Result<Self, StoreError> {
        exists(folder)?;
        let lock = lock(folder)?;
        Self::connect(folder, OpenFlags::SQLITE_OPEN_READ_WRITE, Some(lock))
    }

    /// Opens a study to look at it; it may be under way.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        exists(folder)?;
        // A journal left by a crash is rolled back by the first who may write.
        let with = match folder.join("study.db-journal").exists() {
            true => OpenFlags::SQLITE_OPEN_READ_WRITE,
            false => OpenFlags::SQLITE_OPEN_READ_ONLY,
        };
        Self::connect(folder, with, None)
    }

    fn connect(folder: &Path, flags: OpenFlags, lock: Option<File>) -> Result<Self, StoreError> {
        let fail = |problem| StoreError::database(folder, problem);
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(folder.join(DATABASE), flags).map_err(fail)?;
        connection
            .busy_timeout(Duration::from_secs(10))
            .map_err(fail)?;
        // A commit outlasts a power cut.
        connection
            .pragma_update(None, "synchronous", "EXTRA")
            .map_err(fail)?;
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        if pragma("application_id").map_err(fail)? != APPLICATION {
            return Err(StoreError::Foreign(folder.join(DATABASE)));
        }
        let version = pragma("user_version").map_err(fail)?;
        if version != SCHEMA {
            return Err(StoreError::Version {
                folder: folder.to_owned(),
                version,
            });
        }
        let writable = lock.is_some();
        tracing::info!(folder = %folder.display(), writable, "study opened");
        Ok(Self {
            folder: folder.to_owned(),
            connection,
            _lock: lock,
        })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a run's samples are, or will be.
    pub fn samples_file(&self, run: u64) -> PathBuf {
        samples_file(&self.folder, run)
    }

    /// Keeps runs, all or none; they are on disk when this returns. Of two with the same number the first
    /// stays.
    pub fn record(&mut self, runs: &[(u64, RunRecord)]) -> Result<(), StoreError> {
        // The names of the samples' files first.
        sync(&self.folder.join(SAMPLES))
            .map_err(|problem| StoreError::folder(&self.folder, problem))?;
        let mut tries = 0;
        loop {
            match write::record(&mut self.connection, runs) {
                // Somebody looks at it, with a tool that holds it for long.
                Err(problem) if write::is_busy(&problem) && tries < PATIENCE => {
                    tracing::warn!(tries, "study database is busy");
                    tries += 1;
                }
                done => {
                    let ids: Vec<u64> = runs.iter().map(|(id, _)| *id).collect();
                    tracing::debug!(runs = ?ids, ok = done.is_ok(), "runs committed");
                    return done.map_err(|problem| StoreError::database(&self.folder, problem));
                }
            }
        }
    }

    /// Forgets the runs that did not end well, so that they are tried again; says how many.
    pub fn forget_failed(&mut self) -> Result<usize, StoreError> {
        write::forget_failed(&mut self.connection)
            .map_err(|problem| StoreError::database(&self.folder, problem))
    }

    /// Results that single tasks have left and nobody took in.
    pub fn waiting(&self) -> usize {
        let entries = std::fs::read_dir(self.folder.join(TASKS));
        let names = entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name());
        names
            .filter(|name| name.to_string_lossy().ends_with(".json"))
            .count()
    }

    /// Takes in what single tasks have left.
    pub fn gather(&mut self) -> Result<usize, StoreError> {
        let found = tasks::read_tasks(&self.folder)?;
        let runs: Vec<(u64, RunRecord)> = found
            .iter()
            .map(|(id, run, _)| (*id, run.clone()))
            .collect();
        self.record(&runs)?;
        for (_, _, file) in &found {
            let _ = std::fs::remove_file(file);
        }
        Ok(found.len())
    }

    /// Removes the study and its files, and its folder where nothing else is in it.
    pub fn delete(self) -> Result<(), StoreError> {
        let folder = self.folder.clone();
        let fail = |problem| StoreError::folder(&folder, problem);
        drop(self.connection);
        for (name, extension) in [(SAMPLES, "parquet"), (TASKS, "json")] {
            let within = folder.join(name);
            tidy(&within);
            for entry in std::fs::read_dir(&within).into_iter().flatten().flatten() {
                if is_numbered(&entry.path(), extension) {
                    std::fs::remove_file(entry.path()).map_err(fail)?;
                }
            }
            let _ = std::fs::remove_dir(&within);
        }
        for name in [PLAN, "study.db-journal", LOCK, DATABASE] {
            let path = folder.join(name);
            if path.exists() {
                std::fs::remove_file(path).map_err(fail)?;
            }
        }
        let _ = std::fs::remove_dir(&folder);
        Ok(())
    }
}

/// Where a run's samples are, or will be.
pub fn samples_file(folder: &Path, run: u64) -> PathBuf {
    folder.join(SAMPLES).join(format!("{run}.parquet"))
}

/// Whether a folder holds a study.
pub fn is_study(folder: &Path) -> bool {
    folder.join(DATABASE).is_file()
}

/// Whether nothing is in a folder but what a study that was not finished leaves.
fn is_free(folder: &Path) -> std::io::Result<bool> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let is_ours = match name.to_string_lossy().as_ref() {
            LOCK | "study.db.new" | "study.db.new-journal" => true,
            SAMPLES => std::fs::read_dir(entry.path())?.next().is_none(),
            name => name.starts_with(UNFINISHED),
        };
        if !is_ours {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes files that a killed process did not finish.
fn tidy(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// `17.parquet`: a file of a run.
fn is_numbered(path: &Path, extension: &str) -> bool {
    let is_number = path
        .file_stem()
        .and_then(|stem| stem.to_str()?.parse::<u64>().ok());
    is_number.is_some() && path.extension().is_some_and(|of| of == extension)
}

fn exists(folder: &Path) -> Result<(), StoreError> {
    match is_study(folder) {
        true => Ok(()),
        false => Err(StoreError::Missing(folder.to_owned())),
    }
}

/// The kernel lets go of it however this process ends.
fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|problem| StoreError::folder(folder, problem))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::Busy(folder.to_owned())),
        Err(problem) => Err(StoreError::folder(folder, problem.into())),
    }
}

/// Has a folder's names on disk.
fn sync(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Writes a file that takes its name when it is whole and on disk.
pub fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
