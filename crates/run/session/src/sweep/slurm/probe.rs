//! The first job of a study: it checks that the nodes see the study's folder, and plans a study of a command with the
//! GPUs of a node, because the machine that submits often has none.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sweetspot_study::{
    Definition, Outline, UNFINISHED, read_plan_file, write_atomically, write_plan_file,
};
use sweetspot_workload::{SignalSource, WorkloadError};

use super::commands::{Scheduler, SlurmCommands};
use super::queue::{JobState, QueuedTask};
use super::script::probe_job;
use super::{MAX_OUTAGE, OUTAGE_POLL, SlurmError, current_job, wait_reason};
use crate::SessionError;
use crate::observer::Observer;
use crate::sweep::Sweep;

/// The largest accepted size of a question or an answer.
const MAX_BYTES: u64 = 16 << 20;

/// The time between two looks at the queue.
const POLL: Duration = Duration::from_millis(200);

/// How long the answer of a job that has ended may take to become visible here.
const ANSWER_DELAY: Duration = Duration::from_secs(10);

/// The exit code of a shell that does not find a program.
const NOT_FOUND: i32 = 127;

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the job is asked to do.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    /// The study to plan; absent if it is planned already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<Definition>,
}

/// What the job has found.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    node: String,
    version: String,
    /// What the user should know about the values of the axes.
    notes: Vec<String>,
    /// Why the study cannot be planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// What the first job has found.
pub struct ProbedNode {
    /// The node on which the job ran.
    pub node: String,
    /// The plan of the study, if the job was asked for it.
    pub outline: Option<Outline>,
    /// What the user should know about the values of the axes.
    pub notes: Vec<String>,
}

/// A folder that is removed at the end.
struct ProbeFolder(PathBuf);

impl Drop for ProbeFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Submits the first job and waits for its answer. `base` is a folder of the file system on which the study will be.
pub fn probe(
    base: &Path,
    definition: Option<&Definition>,
    program: &Path,
    user: &[String],
    observer: &mut dyn Observer,
) -> Result<ProbedNode, SessionError> {
    let signals = SignalSource::listen()?;
    let number = std::process::id();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let name = format!(
        "sweetspot-probe-{number}-{}",
        since.unwrap_or_default().subsec_nanos()
    );
    let folder = ProbeFolder(base.join(format!("{UNFINISHED}{name}")));
    std::fs::create_dir_all(&folder.0).map_err(SlurmError::file(&folder.0))?;
    let question = Question {
        definition: definition.cloned(),
    };
    write(&folder.0.join("question.json"), &question)?;
    let mut slurm = SlurmCommands::with_signals(&signals);
    let job = slurm.submit(&probe_job(&folder.0, &name, program, user))?;
    let answered = wait_for_answer(&mut slurm, job, &name, &folder.0, &signals, observer);
    if answered.is_err() {
        // The job may wait in the queue for ever.
        let _ = slurm.cancel(&[job]);
    }
    let answer = match answered {
        Err(SessionError::Slurm(SlurmError::NotShared { job, node, .. })) => {
            return Err(match slurm.exit_code(job) {
                Some(NOT_FOUND) => SlurmError::NoProgram {
                    node,
                    program: program.to_owned(),
                },
                _ => SlurmError::NotShared {
                    folder: base.to_owned(),
                    job,
                    node,
                },
            }
            .into());
        }
        answer => answer?,
    };
    let node = answer.node;
    if answer.version != VERSION {
        let there = answer.version;
        let here = VERSION;
        return Err(SlurmError::OtherVersion { node, there, here }.into());
    }
    if let Some(problem) = answer.problem {
        return Err(SlurmError::OnNode { node, problem }.into());
    }
    let outline = match definition {
        Some(_) => Some(read_plan_file(&folder.0)?.1),
        None => None,
    };
    Ok(ProbedNode {
        node,
        outline,
        notes: answer.notes,
    })
}

/// Waits until the job has answered, or has ended without an answer.
fn wait_for_answer(
    slurm: &mut dyn Scheduler,
    job: u64,
    name: &str,
    folder: &Path,
    signals: &SignalSource,
    observer: &mut dyn Observer,
) -> Result<Answer, SessionError> {
    let file = folder.join("answer.json");
    let mut ended_at: Option<Instant> = None;
    let mut told = String::new();
    let begun = Instant::now();
    let mut reachable_at = begun;
    loop {
        let queue = match slurm.queue(&[name.to_owned()]) {
            Ok(queue) => queue,
            Err(problem) => {
                if let Some(signal) = signals.received() {
                    return Err(WorkloadError::Interrupted(signal).into());
                }
                if !problem.is_outage() || reachable_at.elapsed() >= MAX_OUTAGE {
                    return Err(problem.into());
                }
                observer.note(&format!("{problem}; trying again"));
                signals.wait_until(Instant::now() + OUTAGE_POLL)?;
                continue;
            }
        };
        reachable_at = Instant::now();
        let task = queue.iter().find(|task| task.job == job);
        if let Ok(text) = sweetspot_input::read_bytes(&file, MAX_BYTES)
            && let Ok(answer) = serde_json::from_slice(&text)
        {
            return Ok(answer);
        }
        match task.map(|task| &task.state) {
            Some(JobState::Pending) => {
                let reason = task.map(|task| task.reason.as_str()).unwrap_or_default();
                if let Some(text) = wait_reason(reason, begun.elapsed(), &mut told) {
                    observer.note(&format!(
                        "the first job (job {job}) waits in the queue: {text}"
                    ));
                }
            }
            Some(JobState::Running) => {}
            Some(JobState::Ended(_)) | None => {
                let ended_at = *ended_at.get_or_insert_with(Instant::now);
                if ended_at.elapsed() >= ANSWER_DELAY || is_plain_failure(task) {
                    return Err(no_answer(job, task, folder).into());
                }
            }
        }
        signals.wait_until(Instant::now() + POLL)?;
        if let Some(signal) = signals.received() {
            return Err(WorkloadError::Interrupted(signal).into());
        }
    }
}

/// Whether a job failed by itself: it cannot have left an answer, so that there is nothing to wait for.
fn is_plain_failure(task: Option<&QueuedTask>) -> bool {
    let state = task.map(|task| &task.state);
    matches!(state, Some(JobState::Ended(word)) if word == "FAILED")
}

/// The error for a job that ended without an answer.
fn no_answer(job: u64, task: Option<&QueuedTask>, folder: &Path) -> SlurmError {
    let node = task.map(|task| task.node.clone()).unwrap_or_default();
    let folder = folder.to_owned();
    match task.map(|task| &task.state) {
        Some(JobState::Ended(word)) if word == "FAILED" || word == "COMPLETED" => {
            SlurmError::NotShared { folder, job, node }
        }
        state => {
            let state = match state {
                Some(JobState::Ended(word)) => word.clone(),
                _ => "Slurm no longer knows it".to_owned(),
            };
            SlurmError::ProbeLost { job, state, folder }
        }
    }
}

/// Answers the question in a folder; this runs on a node.
pub fn answer_probe(folder: &Path) -> Result<(), SessionError> {
    let path = folder.join("question.json");
    let text = sweetspot_input::read_bytes(&path, MAX_BYTES).map_err(SlurmError::file(&path))?;
    let question: Question = serde_json::from_slice(&text)
        .map_err(std::io::Error::other)
        .map_err(SlurmError::file(&path))?;
    let planned = question.definition.as_ref().map(Sweep::prepare).transpose();
    let mut answer = Answer {
        node: current_job().map_or_else(String::new, |(node, _)| node),
        version: VERSION.to_owned(),
        notes: Vec::new(),
        problem: None,
    };
    match planned {
        Ok(Some(sweep)) => {
            write_plan_file(folder, &sweep.outline)?;
            answer.notes = sweep.notes;
        }
        Ok(None) => {}
        Err(problem) => answer.problem = Some(problem.to_string()),
    }
    write(&folder.join("answer.json"), &answer)?;
    Ok(())
}

/// Writes a file under a temporary name, and renames it once it is on disk.
fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), SlurmError> {
    let written = serde_json::to_vec(value)
        .map_err(std::io::Error::other)
        .and_then(|text| write_atomically(path, &text));
    written.map_err(SlurmError::file(path))
}
