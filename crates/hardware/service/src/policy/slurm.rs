//! The part `[slurm]` of a policy: what happens to jobs of Slurm that ask for settings.

use std::path::PathBuf;

use toml::de::DeValue;

use super::PolicyError;
use super::file::{Entry, PolicyFile, entries};
use super::keys::{SLURM_KEYS, names};
use super::values::quote;

/// The folder with a record of each job, unless the policy names another.
pub const JOBS_FOLDER: &str = "/var/lib/sweetspot/jobs";

/// What happens to jobs of Slurm that ask for settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmPolicy {
    /// Whether a job whose request is refused is cancelled. Otherwise it runs without its setting.
    pub cancels_refused: bool,
    /// Whether the result is written to the job's admin comment.
    pub admin_comment: bool,
    /// Whether the energy of jobs is recorded that ask for nothing.
    pub all_jobs: bool,
    /// The folder with a record of each job.
    pub folder: PathBuf,
    /// A folder with stored choices for all users; `None` if only those of the user count.
    pub choices: Option<PathBuf>,
}

impl Default for SlurmPolicy {
    fn default() -> Self {
        Self {
            cancels_refused: false,
            admin_comment: false,
            all_jobs: false,
            folder: PathBuf::from(JOBS_FOLDER),
            choices: None,
        }
    }
}

/// Reads the part `[slurm]`.
pub(super) fn read_slurm(
    file: PolicyFile<'_>,
    part: &Entry<'_, '_>,
) -> Result<SlurmPolicy, PolicyError> {
    let DeValue::Table(table) = part.value.get_ref() else {
        let message = "write the line `[slurm]`, and its keys below".to_owned();
        return Err(file.error(&part.span, Some("slurm"), message));
    };
    let mut policy = SlurmPolicy::default();
    for entry in entries(table) {
        match entry.key {
            "refused-jobs" => policy.cancels_refused = read_refused(file, &entry)?,
            "admin-comment" => policy.admin_comment = file.boolean(&entry)?,
            "all-jobs" => policy.all_jobs = file.boolean(&entry)?,
            "folder" => policy.folder = read_folder(file, &entry)?,
            "choices" => policy.choices = Some(read_folder(file, &entry)?),
            unknown => {
                let keys = names(&SLURM_KEYS);
                let message = format!("unknown key {}: use one of {keys}", quote(unknown));
                return Err(file.error(&entry.span, None, message));
            }
        }
    }
    Ok(policy)
}

/// Reads what happens to a job whose request is refused.
fn read_refused(file: PolicyFile<'_>, entry: &Entry<'_, '_>) -> Result<bool, PolicyError> {
    match entry.value.get_ref() {
        DeValue::String(text) if text == "run" => Ok(false),
        DeValue::String(text) if text == "cancel" => Ok(true),
        _ => Err(file.wrong_type(entry.key, entry.value, "\"run\" or \"cancel\"")),
    }
}

/// Reads the path of a folder.
fn read_folder(file: PolicyFile<'_>, entry: &Entry<'_, '_>) -> Result<PathBuf, PolicyError> {
    match entry.value.get_ref() {
        DeValue::String(text) if text.starts_with('/') => Ok(PathBuf::from(text.as_ref())),
        _ => {
            let expected = format!("the path of a folder in quotes, such as \"{JOBS_FOLDER}\"");
            Err(file.wrong_type(entry.key, entry.value, &expected))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Policy, SystemAccounts};
    use super::*;

    fn read(text: &str) -> Result<SlurmPolicy, String> {
        let policy = Policy::from_text(text, "p", &SystemAccounts);
        let policy = policy.map_err(|error| error.to_string())?;
        Ok(policy.slurm().clone())
    }

    #[test]
    fn jobs_run_unless_the_policy_says_otherwise() {
        assert_eq!(read("").unwrap(), SlurmPolicy::default());
        assert!(!SlurmPolicy::default().cancels_refused);
        let given = read(
            "[slurm]\nrefused-jobs = \"cancel\"\nadmin-comment = true\nall-jobs = true\nfolder = \"/x\"\nchoices = \"/y\"\n",
        );
        let expected = SlurmPolicy {
            cancels_refused: true,
            admin_comment: true,
            all_jobs: true,
            folder: "/x".into(),
            choices: Some("/y".into()),
        };
        assert_eq!(given.unwrap(), expected);
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, expected) in [
            ("[slurm]\nrefused_jobs = \"run\"", "p:2: unknown key"),
            ("[slurm]\nrefused-jobs = \"fail\"", "p:2: `refused-jobs`"),
            ("[slurm]\nfolder = \"x\"", "p:2: `folder`"),
            ("[slurm]\nadmin-comment = 1", "p:2: `admin-comment`"),
            ("slurm = true", "p:1: `slurm`"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }
}
