//! The settings that earlier runs of `tune` chose: a small file for each job, in the user's state folder.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sweetspot_device::Settings;
use sweetspot_stats::Seed;

/// The largest accepted size of a stored choice.
const MAX_CHOICE_BYTES: u64 = 1 << 20;

/// The properties that identify a job: two runs with equal properties are runs of the same job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    pub gpu: String,
    pub gpus: usize,
    pub simulated: bool,
    pub workload: String,
    pub knob: String,
    pub objective: String,
    pub limits: Vec<String>,
}

/// The settings that `tune` chose for a job, and their effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The settings of all GPUs.
    pub settings: Settings,
    /// The settings of each GPU that were derived from them; absent if all GPUs had the same settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<Vec<Settings>>,
    /// The relative improvement of the objective over the reference settings; 0.1 is 10 %.
    pub gain: f64,
    /// The expected relative loss compared with the best settings; 0.01 is 1 %; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_regret: Option<f64>,
    /// The run time of the whole job, in seconds.
    pub time_s: f64,
}

/// The content of the file that stores a choice.
#[derive(Serialize, Deserialize)]
struct StoredChoice {
    schema: String,
    job: Fingerprint,
    choice: Choice,
}

/// The format of the file that stores a choice, with its version.
const SCHEMA: &str = "sweetspot.choice/1";

/// Why the settings chosen by an earlier run cannot be read or stored. Tuning continues without them.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// The file with the settings of an earlier run cannot be read, or its content is invalid.
    #[error(
        "the settings that an earlier run chose cannot be read from {}: {problem}; the file is ignored and will be replaced",
        file.display()
    )]
    Damaged {
        /// The path of the file that stores the chosen settings.
        file: PathBuf,
        /// Why the file cannot be read.
        problem: String,
    },
    /// The file for the chosen settings cannot be written.
    #[error("the chosen settings cannot be stored in {}: {problem}", file.display())]
    NotStored {
        /// The path of the file that stores the chosen settings.
        file: PathBuf,
        /// The operating system's error.
        problem: std::io::Error,
    },
}

/// A folder that stores the settings that earlier runs of `tune` chose.
#[derive(Clone, Debug)]
pub struct ChoiceStore {
    folder: PathBuf,
}

impl ChoiceStore {
    /// Creates a store in this folder. The folder is created when the first choice is stored.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// The store in the user's state folder: `$XDG_STATE_HOME/sweetspot/choices`, or
    /// `~/.local/state/sweetspot/choices`; `None` if neither is known.
    pub fn of_user() -> Option<Self> {
        let folder_from = |name: &str| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let state = folder_from("XDG_STATE_HOME")
            .or_else(|| Some(folder_from("HOME")?.join(".local/state")))?;
        Some(Self::in_folder(state.join("sweetspot/choices")))
    }

    /// The folder in which choices are stored.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file for a job's choice. Its name is a hash of the fingerprint's debug text. Therefore do not rename fields
    /// of [`Fingerprint`]: stored choices would no longer be found.
    fn file(&self, fingerprint: &Fingerprint) -> PathBuf {
        let seed = Seed::new(0).label(&format!("{fingerprint:?}"));
        self.folder.join(format!("{:016x}.json", seed.get()))
    }

    /// The stored choice for a job, if there is one.
    pub(crate) fn recall(&self, fingerprint: &Fingerprint) -> Result<Option<Choice>, ChoiceError> {
        let file = self.file(fingerprint);
        let damaged = |problem: String| ChoiceError::Damaged {
            file: file.clone(),
            problem,
        };
        let text = match sweetspot_input::read_text(&file, MAX_CHOICE_BYTES) {
            Ok(text) => text,
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(problem) => return Err(damaged(problem.to_string())),
        };
        let stored: StoredChoice =
            serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if stored.schema != SCHEMA {
            return Err(damaged(format!(
                "the file's schema is {}, not {SCHEMA}",
                stored.schema
            )));
        }
        let is_usable = stored.choice.gain.is_finite() && stored.choice.time_s.is_finite();
        Ok(Some(stored.choice).filter(|_| stored.job == *fingerprint && is_usable))
    }

    /// Stores the settings chosen for a job. After a crash, the file contains either the old or the new
    /// choice.
    pub(crate) fn remember(
        &self,
        fingerprint: &Fingerprint,
        choice: &Choice,
    ) -> Result<(), ChoiceError> {
        let file = self.file(fingerprint);
        let stored = StoredChoice {
            schema: SCHEMA.to_owned(),
            job: fingerprint.clone(),
            choice: choice.clone(),
        };
        let write = || -> std::io::Result<()> {
            let mut builder = std::fs::DirBuilder::new();
            // What another user writes here would be set on this user's GPUs.
            builder.recursive(true).mode(0o700).create(&self.folder)?;
            let temporary = file.with_extension(format!("{}.new", std::process::id()));
            let mut text = serde_json::to_string_pretty(&stored)?;
            text.push('\n');
            let mut options = std::fs::File::options();
            let mut out = options
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&temporary)?;
            out.write_all(text.as_bytes())?;
            out.sync_all()?;
            std::fs::rename(&temporary, &file)
        };
        write().map_err(|problem| ChoiceError::NotStored {
            file: file.clone(),
            problem,
        })
    }
}

/// Which stored choice is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceQuery {
    /// The product name of the GPUs.
    pub gpu: String,
    /// The number of GPUs.
    pub gpus: usize,
    /// The objective, such as `edp`.
    pub objective: String,
    /// A part of the workload's name; `None` for any workload.
    pub workload: Option<String>,
}

impl ChoiceQuery {
    /// The newest choice in a folder that answers the query and was made without limits; `None` if there is none.
    pub fn find(&self, folder: &Path) -> Option<Settings> {
        let entries = std::fs::read_dir(folder).ok()?.flatten();
        let answers = entries.filter_map(|entry| {
            let text = sweetspot_input::read_text(entry.path(), MAX_CHOICE_BYTES).ok()?;
            let stored: StoredChoice = serde_json::from_str(&text).ok()?;
            let changed = entry.metadata().and_then(|data| data.modified()).ok()?;
            (stored.schema == SCHEMA && self.matches(&stored.job))
                .then_some((changed, stored.choice.settings))
        });
        answers
            .max_by_key(|(changed, _)| *changed)
            .map(|(_, settings)| settings)
    }

    /// Whether a choice for this job answers the query.
    fn matches(&self, job: &Fingerprint) -> bool {
        let has_workload = |part: &String| job.workload.contains(part.as_str());
        job.gpu == self.gpu
            && job.gpus == self.gpus
            && job.objective == self.objective
            && job.limits.is_empty()
            && self.workload.as_ref().is_none_or(has_workload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(objective: &str) -> Fingerprint {
        Fingerprint {
            gpu: "Tesla V100".to_owned(),
            gpus: 1,
            simulated: true,
            workload: "resnet50".to_owned(),
            knob: "power-cap".to_owned(),
            objective: objective.to_owned(),
            limits: Vec::new(),
        }
    }

    #[test]
    fn a_choice_is_remembered_for_its_job_and_a_damaged_file_is_reported() {
        let folder = std::env::temp_dir().join(format!("sweetspot-choices-{}", std::process::id()));
        let store = ChoiceStore::in_folder(&folder);
        let choice = Choice {
            settings: Settings::default(),
            each: Some(vec![Settings::default(); 2]),
            gain: 0.1,
            expected_regret: Some(0.001),
            time_s: 600.0,
        };
        assert_eq!(store.recall(&job("edp")).unwrap(), None);
        store.remember(&job("edp"), &choice).unwrap();
        assert_eq!(store.recall(&job("edp")).unwrap(), Some(choice.clone()));
        assert_eq!(store.recall(&job("energy")).unwrap(), None);
        let file = store.file(&job("edp"));
        for damage in ["", "{}", "{\"schema\": \"sweetspot.choice/9\"}", "\0\0"] {
            std::fs::write(&file, damage).unwrap();
            let problem = store.recall(&job("edp")).unwrap_err().to_string();
            assert!(problem.contains("cannot be read"), "{problem}");
        }
        store.remember(&job("edp"), &choice).unwrap();
        assert_eq!(store.recall(&job("edp")).unwrap(), Some(choice));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
