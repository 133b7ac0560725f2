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

/// Reads every result of a single run that is not in the database yet, with the path of its file. It is an error if one
/// belongs to another study.
fn read_tasks(
    folder: &Path,
    outline: &Outline,
) -> Result<Vec<(u64, RunRecord, PathBuf)>, StoreError> {
    let Ok(entries) = std::fs::read_dir(folder.join(TASKS)) else {
        return Ok(Vec::new());
    };
    let identity = outline.identity();
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let id = path
            .file_name()
            .and_then(|name| name.to_str()?.strip_suffix(".json")?.parse().ok());
        let Some(id) = id else {
            continue;
        };
        let text = match read_bytes(&path, MAX_FILE_BYTES) {
            Ok(text) => text,
            // Another process may have gathered it meanwhile.
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => continue,
            Err(problem) => return Err(StoreError::folder(folder, problem)),
        };
        let file: Option<TaskFile<RunRecord>> = serde_json::from_slice(&text).ok();
        let file = file.filter(|file| file.schema == TASK_SCHEMA);
        if file.as_ref().is_some_and(|file| file.study != identity) {
            return Err(StoreError::OtherStudy(path));
        }
        let run = file.map(|file| file.run).filter(|run| {
            let is_its_own = outline.plan.task(id) == Some(run.task);
            is_its_own && check_run(run).is_ok()
        });
        match run {
            Some(run) => found.push((id, run, path)),
            // A damaged file is renamed, so that the run is made again.
            None => {
                let _ = std::fs::rename(&path, path.with_extension("json.damaged"));
            }
        }
    }
    found.sort_by_key(|(id, ..)| *id);
    Ok(found)
}

impl Store {
    /// Moves the results of single runs from their files into the database, and returns them. A run that is stored
    /// already stays as it is.
    pub fn gather(&mut self, outline: &Outline) -> Result<Vec<RunRecord>, StoreError> {
        let found = read_tasks(&self.folder, outline)?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let (mut runs, mut files) = (Vec::new(), Vec::new());
        for (id, run, file) in found {
            runs.push((id, run));
            files.push(file);
        }
        self.record(&runs)?;
        for file in files {
            let _ = std::fs::remove_file(file);
        }
        Ok(runs.into_iter().map(|(_, run)| run).collect())
    }
}
