//! What earlier runs chose: a small file for each kind of job, in the user's state folder.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sweetspot_device::Settings;
use sweetspot_stats::Seed;

/// What makes two jobs the same.
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

/// What was chosen for a job, and what it came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    pub settings: Settings,
    /// By how much its objective was better than the reference's, as a fraction.
    pub gain: f64,
    /// By how much it was expected to be worse than the true best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_regret: Option<f64>,
    /// Of the whole job.
    pub time_s: f64,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    schema: String,
    job: Fingerprint,
    choice: Choice,
}

const SCHEMA: &str = "sweetspot.choice/1";

/// A store that cannot be used; tuning goes on without it.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// A file that is not what it should be.
    #[error(
        "what an earlier run chose cannot be read from {}: {problem}; it is left out, and this run writes the file anew",
        file.display()
    )]
    Damaged {
        /// Which.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A file that cannot be written.
    #[error(
        "the choice cannot be remembered in {}: {problem}",
        file.display()
    )]
    NotKept {
        /// Which.
        file: PathBuf,
        /// What the system says.
        problem: std::io::Error,
    },
}

/// Choices in a folder.
#[derive(Clone, Debug)]
pub struct ChoiceStore {
    folder: PathBuf,
}

impl ChoiceStore {
    /// In this folder, which is made when there is something to keep.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// In the user's state folder: `$XDG_STATE_HOME/sweetspot/choices`, or `~/.local/state/sweetspot/choices`.
    /// None where neither is known.
    pub fn of_user() -> Option<Self> {
        let given = |name: &str| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let state =
            given("XDG_STATE_HOME").or_else(|| Some(given("HOME")?.join(".local/state")))?;
        Some(Self::in_folder(state.join("sweetspot/choices")))
    }

    /// Where choices are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self, print: &Fingerprint) -> PathBuf {
        let seed = Seed::new(0).label(&format!("{print:?}"));
        self.folder.join(format!("{:016x}.json", seed.get()))
    }

    /// What was chosen for such a job, if something was.
    pub(crate) fn recall(&self, print: &Fingerprint) -> Result<Option<Choice>, ChoiceError> {
        let file = self.file(print);
        let damaged = |problem: String| ChoiceError::Damaged {
            file: file.clone(),
            problem,
        };
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(problem) => return Err(damaged(problem.to_string())),
        };
        let kept: Kept = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if kept.schema != SCHEMA {
            return Err(damaged(format!(
                "its schema is {}, not {SCHEMA}",
                kept.schema
            )));
        }
        let is_usable = kept.choice.gain.is_finite() && kept.choice.time_s.is_finite();
        Ok(Some(kept.choice).filter(|_| kept.job == *print && is_usable))
    }

    /// Keeps a choice; a crash leaves the old one or the new one.
    pub(crate) fn remember(&self, print: &Fingerprint, choice: &Choice) -> Result<(), ChoiceError> {
        let file = self.file(print);
        let kept = Kept {
            schema: SCHEMA.to_owned(),
            job: print.clone(),
            choice: choice.clone(),
        };
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(&self.folder)?;
            let beside = file.with_extension(format!("{}.new", std::process::id()));
            let mut text = serde_json::to_string_pretty(&kept)?;
            text.push('\n');
            let mut out = std::fs::File::create(&beside)?;
            out.write_all(text.as_bytes())?;
            out.sync_all()?;
            std::fs::rename(&beside, &file)
        };
        write().map_err(|problem| ChoiceError::NotKept {
            file: file.clone(),
            problem,
        })
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
