//! The record of a job: what it asked for, what came of it, and the energy of its GPUs.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, Settings};
use sweetspot_service::ownership::private_folder;
use sweetspot_study::write_atomically_with_mode;

/// The schema of a record.
pub const JOB_SCHEMA: &str = "sweetspot.slurm-job/1";

/// The largest accepted size of a record.
const MAX_BYTES: u64 = 1 << 20;

/// The most records of jobs that are over on a node; the oldest are removed.
const MAX_ENDED: usize = 10_000;

/// The size at which the log of a node is put aside, in place of the one that was put aside before.
const MAX_LOG_BYTES: u64 = 16 << 20;

/// The rights to folders and files with records. Slurm may call the hooks with an umask of 0, and a record decides which
/// leases a hook ends.
const FOLDER_MODE: u32 = 0o755;
pub(super) const RECORD_MODE: u32 = 0o644;

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobProgress {
    /// The job runs, or is about to.
    Running,
    /// The job has ended and its GPUs are restored.
    Ended,
    /// The job has ended, but its GPUs could not be restored yet.
    NotRestored,
}

/// What came of a job's request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobOutcome {
    /// The job asked for nothing.
    NothingAsked,
    /// The prolog has not finished, so that something may be set.
    Unfinished,
    /// These settings were applied to each GPU of the job, as a ceiling.
    Applied(Settings),
    /// The request was refused, for this reason.
    Refused(String),
}

/// A GPU of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobGpu {
    /// The number by which Slurm names the GPU on its node.
    pub index: u32,
    /// The UUID of the GPU.
    pub uuid: DeviceId,
    /// The product name of the GPU.
    pub name: String,
    /// What the energy counter showed when the job began, in joules; absent if the GPU has no counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter_at_start_j: Option<f64>,
    /// The energy of the GPU while the job had it, in joules; absent before the end and without a counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
}

/// The record of a job on one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRecord {
    /// The schema of the record.
    pub schema: String,
    /// The number of the job.
    pub job: u64,
    /// The id of the job's user.
    pub uid: u32,
    /// The node.
    pub node: String,
    /// How often the job was requeued before.
    pub restarts: u32,
    /// How far the job is.
    pub progress: JobProgress,
    /// What came of the job's request.
    pub outcome: JobOutcome,
    /// The GPUs of the job on this node.
    pub gpus: Vec<JobGpu>,
    /// When the job began, in seconds since 1970.
    pub began_unix_s: f64,
    /// When the job ended, in seconds since 1970; absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_unix_s: Option<f64>,
    /// What could not be restored, or why that is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// The name of the record of a job, without its extension; each start of a requeued job has its own.
fn file_stem(job: u64, restarts: u32) -> String {
    match restarts {
        0 => job.to_string(),
        restarts => format!("{job}-restart-{restarts}"),
    }
}

impl JobRecord {
    /// The name of the user's copy of the record.
    pub fn user_file_name(&self) -> String {
        let restart = match self.restarts {
            0 => String::new(),
            restarts => format!("-restart-{restarts}"),
        };
        format!("sweetspot-{}-{}{restart}.json", self.job, self.node)
    }

    /// Describes the result in one line, for the admin comment of the job.
    pub fn summary(&self) -> String {
        let what = match &self.outcome {
            JobOutcome::NothingAsked => "no setting".to_owned(),
            JobOutcome::Unfinished => "interrupted before a setting was known".to_owned(),
            JobOutcome::Applied(settings) => settings_text(settings),
            JobOutcome::Refused(reason) => format!("refused: {reason}"),
        };
        let known: Option<Vec<f64>> = self.gpus.iter().map(|gpu| gpu.energy_j).collect();
        let energy =
            known.map(|all| format!(", {:.0} J on {} GPUs", all.iter().sum::<f64>(), all.len()));
        let plain = format!("sweetspot: {what}{}", energy.unwrap_or_default());
        plain.replace(|letter: char| letter.is_control() || letter == '"', " ")
    }
}

/// Settings as text: `power cap 200 W, core clock 1200 MHz`.
pub fn settings_text(settings: &Settings) -> String {
    let cap = settings.power_cap.map(|cap| format!("power cap {cap}"));
    let core = settings
        .core_clock
        .map(|clock| format!("core clock {clock}"));
    let memory = settings
        .memory_clock
        .map(|clock| format!("memory clock {clock}"));
    let all: Vec<String> = [cap, core, memory].into_iter().flatten().collect();
    all.join(", ")
}

/// Creates a folder that only root can change. One that others can change is refused.
fn create_folder(path: &Path) -> std::io::Result<()> {
    private_folder(path, FOLDER_MODE)
        .map(drop)
        .map_err(std::io::Error::other)
}

/// Removes the oldest files of a folder if it has more than `most`: a tenth more than necessary, so that this is rarely
/// done. What cannot be removed stays.
fn remove_oldest(folder: &Path, most: usize) {
    let entries = || std::fs::read_dir(folder).into_iter().flatten().flatten();
    let count = entries().count();
    if count <= most {
        return;
    }
    let mut files: Vec<(std::time::SystemTime, PathBuf)> = entries()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort();
    for (_, file) in files.iter().take(count - most + most / 10) {
        let _ = std::fs::remove_file(file);
    }
}

/// The folder with the records of the jobs of a node.
#[derive(Clone, Debug)]
pub struct JobRecords {
    folder: PathBuf,
}

impl JobRecords {
    /// Opens the folder, which only root may write to; it is created if it is missing. Each node has its own, because
    /// several may share a file system.
    pub fn open(folder: &Path, node: &str) -> std::io::Result<Self> {
        if let Some(parent) = folder.parent().filter(|parent| !parent.exists()) {
            create_folder(parent)?;
        }
        create_folder(folder)?;
        let folder = folder.join(node.replace('/', "_"));
        create_folder(&folder)?;
        Ok(Self { folder })
    }

    /// The record of a job; `None` if there is none, or if it cannot be read.
    pub fn read(&self, job: u64) -> Option<JobRecord> {
        let text = sweetspot_input::read_bytes(self.file(job), MAX_BYTES).ok()?;
        let record: JobRecord = serde_json::from_slice(&text).ok()?;
        (record.schema == JOB_SCHEMA && record.job == job).then_some(record)
    }

    /// How often a job was started on this node before, as far as its records are still there.
    pub fn earlier_starts(&self, job: u64) -> u32 {
        let ended = self.folder.join("ended");
        let is_there = |starts: &u32| {
            ended
                .join(format!("{}.json", file_stem(job, *starts)))
                .exists()
        };
        (0..).take_while(is_there).count() as u32
    }

    /// The records of jobs whose GPUs are not restored, as far as it is known.
    pub fn open_jobs(&self) -> Vec<JobRecord> {
        let entries = std::fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten();
        let numbers = entries.filter_map(|entry| {
            let name = entry.file_name();
            name.to_str()?.strip_suffix(".json")?.parse::<u64>().ok()
        });
        let records = numbers.filter_map(|job| self.read(job));
        records
            .filter(|record| record.progress != JobProgress::Ended)
            .collect()
    }

    /// Writes the record of a job.
    pub fn write(&self, record: &JobRecord) -> std::io::Result<()> {
        let text = serde_json::to_vec_pretty(record)?;
        if record.progress != JobProgress::Ended {
            return write_atomically_with_mode(&self.file(record.job), &text, RECORD_MODE);
        }
        // Jobs that are over are put aside, so that hooks do not read all jobs of a node's life.
        let ended = self.folder.join("ended");
        create_folder(&ended)?;
        let name = file_stem(record.job, record.restarts);
        let file = ended.join(format!("{name}.json"));
        write_atomically_with_mode(&file, &text, RECORD_MODE)?;
        remove_oldest(&ended, MAX_ENDED);
        match std::fs::remove_file(self.file(record.job)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Adds a line to the log of the node. A log that cannot be written does not keep a job from running.
    pub fn log(&self, event: &str, record: &JobRecord, details: &str) {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let line = serde_json::json!({
            "unix_s": since.unwrap_or_default().as_secs_f64(), "event": event, "job": record.job,
            "uid": record.uid, "details": details,
        });
        let path = self.folder.join("log.jsonl");
        if path.metadata().is_ok_and(|file| file.len() > MAX_LOG_BYTES) {
            let _ = std::fs::rename(&path, self.folder.join("log.1.jsonl"));
        }
        let mut options = std::fs::File::options();
        let file = options
            .create(true)
            .append(true)
            .mode(RECORD_MODE)
            .open(path);
        let written = file.and_then(|mut file| writeln!(file, "{line}"));
        if let Err(error) = written {
            tracing::warn!(%error, "cannot write the log of jobs");
        }
        tracing::info!(job = record.job, event, details, "job");
    }

    /// The file of a job's record.
    fn file(&self, job: u64) -> PathBuf {
        self.folder.join(format!("{job}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record of a job that is over.
    fn ended(job: u64, restarts: u32) -> JobRecord {
        JobRecord {
            schema: JOB_SCHEMA.to_owned(),
            job,
            uid: 1,
            node: "n1".to_owned(),
            restarts,
            progress: JobProgress::Ended,
            outcome: JobOutcome::NothingAsked,
            gpus: Vec::new(),
            began_unix_s: 1.0,
            ended_unix_s: None,
            problems: Vec::new(),
        }
    }

    #[test]
    fn each_start_of_a_requeued_job_has_its_own_record() {
        let folder = tempfile::tempdir().unwrap();
        let records = JobRecords {
            folder: folder.path().to_owned(),
        };
        assert_eq!(records.earlier_starts(7), 0);
        // Other jobs have names that begin alike.
        for name in ["7.json", "7-restart-1.json", "70.json"] {
            std::fs::create_dir_all(folder.path().join("ended")).unwrap();
            std::fs::write(folder.path().join("ended").join(name), "").unwrap();
        }
        assert_eq!(records.earlier_starts(7), 2);
        assert_eq!(ended(7, 0).user_file_name(), "sweetspot-7-n1.json");
        assert_eq!(
            ended(7, 2).user_file_name(),
            "sweetspot-7-n1-restart-2.json"
        );
    }

    #[test]
    fn the_oldest_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let time = |second| std::time::UNIX_EPOCH + std::time::Duration::from_secs(second);
        for number in 0..21 {
            let file = std::fs::File::create(folder.path().join(format!("{number}.json"))).unwrap();
            file.set_modified(time(1000 - number)).unwrap();
        }
        remove_oldest(folder.path(), 21);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 21);
        remove_oldest(folder.path(), 20);
        let left = |number: u64| folder.path().join(format!("{number}.json")).exists();
        assert!((0..18).all(left) && !(18..21).any(left));
    }
}
