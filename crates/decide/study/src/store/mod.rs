//! The store of a study: a folder with a database, and a file of samples for each run.
//!
//! A run is on disk before it counts as done. Only the process that has locked the folder writes the database; any
//! process may read the database at any time.

mod error;
mod merge;
mod read;
mod tasks;
mod validate;
mod write;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

pub use error::StoreError;
pub use merge::merge;
pub use read::StoredRuns;
pub use tasks::{read_plan_file, task_file, write_plan_file, write_task};

use crate::{AddedRuns, Outline, RunRecord, StudyError};

/// The version of the database schema that this program writes and reads.
pub const SCHEMA: i32 = 1;
/// The application id of SQLite that marks the database of a study: `SWSP`.
const APPLICATION_ID: i32 = 0x5357_5350;

/// The name of the database file.
const DATABASE: &str = "study.db";
/// The name of the lock file, which the process that writes the study locks.
const LOCK: &str = "lock";
/// The name of the folder with the power samples of the runs.
const SAMPLES: &str = "samples";
/// The name of the folder with the results of single runs that are not in the database yet.
const TASKS: &str = "tasks";
/// The name of the folder with what a scheduler's jobs need and leave.
pub const JOBS: &str = "slurm";
/// The name of the file from which single runs read the plan of the study.
const PLAN: &str = "plan.json";
/// The beginning of the name of a file that is not completely written yet.
pub const UNFINISHED: &str = ".unfinished-";
/// The maximum number of attempts to commit while another program has locked the database; each waits 10 s.
const MAX_COMMIT_TRIES: u32 = 60;

/// An open study on disk.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    connection: Connection,
    /// The lock on the folder, released when this is dropped; absent if the study is only read.
    _lock: Option<File>,
}

impl Store {
    /// Creates a study in a new or empty folder.
    pub fn create(folder: &Path, outline: &Outline) -> Result<Self, StoreError> {
        let fail = |problem| StoreError::folder(folder, problem);
        let database = folder.join(DATABASE);
        if database.exists() {
            return Err(StoreError::Exists(folder.to_owned()));
        }
        if !is_empty_or_unfinished(folder).map_err(fail)? {
            return Err(StoreError::NotEmpty(folder.to_owned()));
        }
        std::fs::create_dir_all(folder.join(SAMPLES)).map_err(fail)?;
        let lock = lock(folder)?;
        // The database gets its final name once it is complete.
        let unfinished = folder.join("study.db.new");
        let _ = std::fs::remove_file(&unfinished);
        let created = write::create_database(&unfinished, outline);
        created.map_err(|problem| StoreError::database(folder, problem))?;
        std::fs::rename(&unfinished, &database).map_err(fail)?;
        tasks::write_plan_file(folder, outline)?;
        sync_folder(folder).map_err(fail)?;
        Self::connect(folder, OpenFlags::SQLITE_OPEN_READ_WRITE, Some(lock))
    }

    /// Opens a study to add runs to it; fails if another process is adding runs.
    pub fn resume(folder: &Path) -> Result<Self, StoreError> {
        let mut store = Self::open_exclusive(folder)?;
        let samples = folder.join(SAMPLES);
        remove_unfinished(&samples);
        // A copy of a study may lack the folder of samples.
        std::fs::create_dir_all(&samples).map_err(|problem| StoreError::Folder {
            folder: samples.clone(),
            problem,
        })?;
        // A copy of a study may lack the plan file, and a killed process may have left an earlier plan in it.
        let outline = store.outline()?;
        if !tasks::has_plan_file(folder, &outline) {
            tasks::write_plan_file(folder, &outline)?;
        }
        store.gather(&outline)?;
        Ok(store)
    }

    /// Opens a study to change or delete it; fails if another process is working on it.
    pub fn open_exclusive(folder: &Path) -> Result<Self, StoreError> {
        require_study(folder)?;
        let lock = lock(folder)?;
        Self::connect(folder, OpenFlags::SQLITE_OPEN_READ_WRITE, Some(lock))
    }

    /// Opens a study to read it, even while another process adds runs.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        require_study(folder)?;
        // A journal left by a crash is rolled back by the first process that may write.
        let mode = match folder.join("study.db-journal").exists() {
            true => OpenFlags::SQLITE_OPEN_READ_WRITE,
            false => OpenFlags::SQLITE_OPEN_READ_ONLY,
        };
        Self::connect(folder, mode, None)
    }

    /// Opens the database and checks that it is a study of the right version.
    fn connect(folder: &Path, flags: OpenFlags, lock: Option<File>) -> Result<Self, StoreError> {
        let fail = |problem| StoreError::database(folder, problem);
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(folder.join(DATABASE), flags).map_err(fail)?;
        connection
            .busy_timeout(Duration::from_secs(10))
            .map_err(fail)?;
        // With EXTRA, a commit survives a power failure.
        connection
            .pragma_update(None, "synchronous", "EXTRA")
            .map_err(fail)?;
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        if pragma("application_id").map_err(fail)? != APPLICATION_ID {
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

    /// The folder of the study.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of the file with the power samples of a run.
    pub fn samples_file(&self, run: u64) -> PathBuf {
        samples_file(&self.folder, run)
    }

    /// Stores runs, all or none; they are on disk when this returns. A run whose identifier is already stored is
    /// ignored.
    pub fn record(&mut self, runs: &[(u64, RunRecord)]) -> Result<(), StoreError> {
        // The names of the files of samples must be on disk before the runs.
        sync_folder(&self.folder.join(SAMPLES))
            .map_err(|problem| StoreError::folder(&self.folder, problem))?;
        let mut tries = 0;
        loop {
            match write::record(&mut self.connection, runs) {
                // Another program, such as a database viewer, may hold the database for long.
                Err(problem) if write::is_busy(&problem) && tries < MAX_COMMIT_TRIES => {
                    tracing::warn!(
                        tries,
                        "another program has locked the study database; retrying"
                    );
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

    /// Adds runs to the plan, so that the study has missing runs again, and returns its new outline. The runs that it
    /// has stay as they are. The caller has opened the study with [`Store::resume`].
    pub fn add_runs(&mut self, added: &AddedRuns) -> Result<Outline, StudyError> {
        let mut outline = self.outline()?;
        outline.add_runs(added)?;
        write::update_plan(&mut self.connection, &outline)
            .map_err(|problem| StoreError::database(&self.folder, problem))?;
        tasks::write_plan_file(&self.folder, &outline)?;
        tracing::info!(?added, "runs added to the plan");
        Ok(outline)
    }

    /// Deletes the failed runs, which are then made again, and returns their number.
    pub fn delete_failed_runs(&mut self) -> Result<usize, StoreError> {
        write::delete_failed_runs(&mut self.connection)
            .map_err(|problem| StoreError::database(&self.folder, problem))
    }

    /// The number of results of single runs that are not in the database yet.
    pub fn waiting_results(&self) -> usize {
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

    /// Deletes the study and its files, and its folder if it is then empty.
    pub fn delete(self) -> Result<(), StoreError> {
        let folder = self.folder.clone();
        let fail = |problem| StoreError::folder(&folder, problem);
        drop(self.connection);
        for (name, extension) in [(SAMPLES, "parquet"), (TASKS, "json")] {
            let within = folder.join(name);
            // What a link leads to is not the study's.
            if within.is_symlink() {
                std::fs::remove_file(&within).map_err(fail)?;
                continue;
            }
            remove_unfinished(&within);
            for entry in std::fs::read_dir(&within).into_iter().flatten().flatten() {
                if is_numbered(&entry.path(), extension) {
                    std::fs::remove_file(entry.path()).map_err(fail)?;
                }
            }
            let _ = std::fs::remove_dir(&within);
        }
        // The records of a scheduler's jobs have nothing but what this program wrote.
        let jobs = folder.join(JOBS);
        match jobs.is_symlink() {
            true => std::fs::remove_file(&jobs).map_err(fail)?,
            false if jobs.is_dir() => std::fs::remove_dir_all(&jobs).map_err(fail)?,
            false => {}
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

/// The path of the file with the power samples of a run of the study in `folder`.
pub fn samples_file(folder: &Path, run: u64) -> PathBuf {
    folder.join(SAMPLES).join(format!("{run}.parquet"))
}

/// Whether a folder contains a study.
pub fn is_study(folder: &Path) -> bool {
    folder.join(DATABASE).is_file()
}

/// Whether a folder is empty, apart from files of a study whose creation was interrupted.
fn is_empty_or_unfinished(folder: &Path) -> std::io::Result<bool> {
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

/// Removes temporary files that killed processes left behind.
fn remove_unfinished(folder: &Path) {
    if folder.is_symlink() {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether a path has a run number as its name and this extension, such as `17.parquet`.
fn is_numbered(path: &Path, extension: &str) -> bool {
    let is_number = path
        .file_stem()
        .and_then(|stem| stem.to_str()?.parse::<u64>().ok());
    is_number.is_some() && path.extension().is_some_and(|of| of == extension)
}

/// Returns an error if the folder contains no study.
fn require_study(folder: &Path) -> Result<(), StoreError> {
    match is_study(folder) {
        true => Ok(()),
        false => Err(StoreError::Missing(folder.to_owned())),
    }
}

/// Locks the folder of a study; the kernel releases the lock however this process ends. A link is not followed and a pipe
/// is not waited for, because somebody else may have made the study.
fn lock(folder: &Path) -> Result<File, StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);
    let opened = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .custom_flags(flags.bits() as i32)
        .open(folder.join(LOCK));
    let file = match opened {
        Ok(file) if file.metadata().is_ok_and(|found| found.is_file()) => file,
        Err(problem) if problem.raw_os_error() != Some(Errno::LOOP.raw_os_error()) => {
            return Err(StoreError::folder(folder, problem));
        }
        _ => {
            let problem = std::io::Error::other("its lock is not a file: delete it");
            return Err(StoreError::folder(folder, problem));
        }
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(StoreError::Busy(folder.to_owned())),
        Err(problem) => Err(StoreError::folder(folder, problem.into())),
    }
}

/// Makes sure that the names of a folder's files are on disk (fsync).
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Writes a file under a temporary name and renames it once it is complete and on disk. The umask decides who can read
/// and change it.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    write_atomically_with_mode(path, bytes, 0o666)
}

/// Does the same for a file that nobody may get more rights to than `mode` says, whatever the umask is.
pub fn write_atomically_with_mode(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .permissions(std::fs::Permissions::from_mode(mode))
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
