//! Runs that are made one by one, perhaps on other machines: a plan file that describes the study, and a file for
//! each result, which is later gathered into the database.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sweetspot_input::read_bytes;

use super::validate::check_outline;
use super::{Outline, PLAN, StoreError, TASKS, write_atomically};
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
    };
    let text = serde_json::to_vec(&file).map_err(|problem| StoreError::damaged(folder, problem))?;
    write_atomically(&folder.join(PLAN), &text)
        .map_err(|problem| StoreError::folder(folder, problem))
}

/// Whether the plan file of a study has the definition and the plan of `outline`.
pub fn has_plan_file(folder: &Path, outline: &Outline) -> bool {
    let file = read_plan_file(folder);
    file.is_ok_and(|(_, file)| file.definition == outline.definition && file.plan == outline.plan)
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
        created_unix_s: None,
    };
    check_outline(&outline).map_err(|problem| StoreError::damaged(&folder, problem))?;
    Ok((folder, outline))
}

/// Writes the result of a single run to a file, which is later gathered into the database.
pub fn write_task(folder: &Path, id: u64, run: &RunRecord) -> Result<PathBuf, StoreError> {
    let fail = |problem| StoreError::folder(folder, problem);
    let tasks = folder.join(TASKS);
    std::fs::create_dir_all(&tasks).map_err(fail)?;
    let text = serde_json::to_vec(run).map_err(|problem| StoreError::damaged(folder, problem))?;
    let file = tasks.join(format!("{id}.json"));
    write_atomically(&file, &text).map_err(fail)?;
    Ok(file)
}

/// Reads every result of a single run that is not in the database yet, with the path of its file.
pub fn read_tasks(folder: &Path) -> Result<Vec<(u64, RunRecord, PathBuf)>, StoreError> {
    let Ok(entries) = std::fs::read_dir(folder.join(TASKS)) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let id = path
            .file_name()
            .and_then(|name| name.to_str()?.strip_suffix(".json")?.parse().ok());
        let Some(id) = id else {
            continue;
        };
        let text = read_bytes(&path, MAX_FILE_BYTES)
            .map_err(|problem| StoreError::folder(folder, problem))?;
        match serde_json::from_slice(&text) {
            Ok(run) => found.push((id, run, path)),
            // A damaged file is renamed, so that the run is made again.
            Err(_) => {
                let _ = std::fs::rename(&path, path.with_extension("json.damaged"));
            }
        }
    }
    found.sort_by_key(|(id, ..)| *id);
    Ok(found)
}
