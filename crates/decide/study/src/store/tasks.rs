//! Runs that are made one by one, perhaps on other machines: a plan file that describes the study, and a file for
//! each result, which is later gathered into the database.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sweetspot_input::read_bytes;

use super::validate::{check_outline, check_run};
use super::{Outline, PLAN, Store, StoreError, TASKS, sync_folder, write_atomically};
use crate::{Definition, Plan, RunRecord, Subject};

/// The largest accepted size of a plan or of a result.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The contents of `plan.json`, from which a single run reads its study.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    schema: String,
    definition: Definition,
    subject: Subject,
    plan: Plan,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<u64>,
    program: String,
    machine: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created_unix_s: Option<f64>,
}

/// The schema version of `plan.json`.
const PLAN_SCHEMA: &str = "sweetspot.plan/1";

/// Writes `plan.json` of a study, from which single runs read it.
pub fn write_plan_file(folder: &Path, outline: &Outline) -> Result<(), StoreError> {
    let file = PlanFile {
        schema: PLAN_SCHEMA.to_owned(),
        definition: outline.definition.clone(),
        subject: outline.subject.clone(),
        plan: outline.plan.clone(),
        fingerprint: outline.fingerprint,
        program: outline.program.clone(),
        machine: outline.machine.clone(),
        created_unix_s: outline.created_unix_s,
    };
    let text = serde_json::to_vec(&file).map_err(|problem| StoreError::damaged(folder, problem))?;
    write_atomically(&folder.join(PLAN), &text)
        .map_err(|problem| StoreError::folder(folder, problem))
}

/// Whether the plan file of a study has the definition and the plan of `outline`.
pub fn has_plan_file(folder: &Path, outline: &Outline) -> bool {
    let file = read_plan_file(folder);
    file.is_ok_and(|(_, file)| {
        file.definition == outline.definition
            && file.plan == outline.plan
            && file.identity() == outline.identity()
    })
}

/// Reads a plan from a study's folder or from the plan file in it, and returns the folder too.
pub fn read_plan_file(path: &Path) -> Result<(PathBuf, Outline), StoreError> {
    let (folder, file) = match path.is_dir() {
        true => (path.to_owned(), path.join(PLAN)),
        false => {
            let folder = path.parent().filter(|folder| *folder != Path::new(""));
            (folder.unwrap_or(Path::new(".")).to_owned(), path.to_owned())
        }
    };
    let text = read_bytes(&file, MAX_FILE_BYTES).map_err(|problem| match problem.kind() {
        std::io::ErrorKind::NotFound => StoreError::Missing(folder.clone()),
        _ => StoreError::folder(&folder, problem),
    })?;
    let plan: PlanFile = serde_json::from_slice(&text)
        .map_err(|problem| StoreError::damaged(&folder, format!("{PLAN}: {problem}")))?;
    if plan.schema != PLAN_SCHEMA {
        let problem = format!(
            "{PLAN} has schema {}, but this program reads {PLAN_SCHEMA}",
            plan.schema
        );
        return Err(StoreError::damaged(&folder, problem));
    }
    let outline = Outline {
        definition: plan.definition,
        subject: plan.subject,
        plan: plan.plan,
        fingerprint: plan.fingerprint,
        program: plan.program,
        machine: plan.machine,
        merged: false,
        created_unix_s: plan.created_unix_s,
    };
    check_outline(&outline).map_err(|problem| StoreError::damaged(&folder, problem))?;
    Ok((folder, outline))
}

/// The schema version of the file with the result of a single run.
const TASK_SCHEMA: &str = "sweetspot.task/1";

/// The contents of a file with the result of a single run.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskFile<R> {
    schema: String,
    /// The identity of the study whose run it is.
    study: String,
    run: R,
}

/// The path of the file with the result of a single run.
pub fn task_file(folder: &Path, id: u64) -> PathBuf {
    folder.join(TASKS).join(format!("{id}.json"))
}

/// Writes the result of a single run to a file, which is later gathered into the database. The result is on disk when
/// this returns.
pub fn write_task(
    outline: &Outline,
    folder: &Path,
    run: &RunRecord,
) -> Result<PathBuf, StoreError> {
    let fail = |problem| StoreError::folder(folder, problem);
    let tasks = folder.join(TASKS);
    std::fs::create_dir_all(&tasks).map_err(fail)?;
    let text = serde_json::to_vec(&TaskFile {
        schema: TASK_SCHEMA.to_owned(),
        study: outline.identity(),
        run,
    });
    let text = text.map_err(|problem| StoreError::damaged(folder, problem))?;
    let file = task_file(folder, outline.plan.id(run.task));
    write_atomically(&file, &text).map_err(fail)?;
    sync_folder(&tasks).map_err(fail)?;
    Ok(file)
}

/// A result of a single run that is not in the database yet, and where it was found.
struct FoundTask {
    id: u64,
    run: RunRecord,
    file: PathBuf,
}

/// Reads every result of a single run that is not in the database yet. It is an error if one belongs to another study.
fn read_tasks(folder: &Path, outline: &Outline) -> Result<Vec<FoundTask>, StoreError> {
    let Ok(entries) = std::fs::read_dir(folder.join(TASKS)) else {
        return Ok(Vec::new());
    };
    let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let identity = outline.identity();
    let found = side_by_side(&files, |file| read_task(file, outline, &identity));
    let found: Result<Vec<_>, _> = found.into_iter().filter_map(Result::transpose).collect();
    let mut found = found?;
    found.sort_by_key(|task| task.id);
    Ok(found)
}

/// Reads the result of a single run; `None` if the file has none. A damaged file is renamed, so that the run is made again.
fn read_task(
    file: &Path,
    outline: &Outline,
    identity: &str,
) -> Result<Option<FoundTask>, StoreError> {
    let name = file.file_name().and_then(|name| name.to_str());
    let id = name.and_then(|name| name.strip_suffix(".json")?.parse().ok());
    let Some(id) = id else {
        return Ok(None);
    };
    let text = match read_bytes(file, MAX_FILE_BYTES) {
        Ok(text) => text,
        // Another process may have gathered it meanwhile.
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(problem) => return Err(StoreError::folder(file, problem)),
    };
    let task: Option<TaskFile<RunRecord>> = serde_json::from_slice(&text).ok();
    let task = task.filter(|task| task.schema == TASK_SCHEMA);
    if task.as_ref().is_some_and(|task| task.study != identity) {
        return Err(StoreError::OtherStudy(file.to_owned()));
    }
    let run = task.map(|task| task.run).filter(|run| {
        let is_its_own = outline.plan.task(id) == Some(run.task);
        is_its_own && check_run(run).is_ok()
    });
    if run.is_none() {
        let _ = std::fs::rename(file, file.with_extension("json.damaged"));
    }
    let file = file.to_owned();
    Ok(run.map(|run| FoundTask { id, run, file }))
}

/// Does some work on each file, for several files at a time: a disk or a shared file system answers each only after a while,
/// which adds up for thousands of files.
fn side_by_side<T: Send>(files: &[PathBuf], work: impl Fn(&Path) -> T + Sync) -> Vec<T> {
    const FILES_AT_A_TIME: usize = 8;
    let on_part = |part: &[PathBuf]| part.iter().map(|file| work(file)).collect::<Vec<T>>();
    let parts = files.chunks(files.len().div_ceil(FILES_AT_A_TIME).max(1));
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .map(|part| scope.spawn(move || on_part(part)))
            .collect();
        let done = threads.into_iter().map(|thread| {
            let done = thread.join();
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        done.flatten().collect()
    })
}

impl Store {
    /// Moves the results of single runs from their files into the database, and returns them. A run that is stored
    /// already stays as it is.
    pub fn gather(&mut self, outline: &Outline) -> Result<Vec<RunRecord>, StoreError> {
        let found = read_tasks(&self.folder, outline)?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let mut files = Vec::with_capacity(found.len());
        let runs = found.into_iter().map(|task| {
            files.push(task.file);
            (task.id, task.run)
        });
        let runs: Vec<(u64, RunRecord)> = runs.collect();
        self.record(&runs)?;
        side_by_side(&files, |file| {
            let _ = std::fs::remove_file(file);
        });
        Ok(runs.into_iter().map(|(_, run)| run).collect())
    }
}
