//! What was submitted, on disk: a submitter that is killed finds its jobs again.
//!
//! An array is written down before it is submitted, under a name that no other job has, and again with its number once
//! Slurm has given it one. If the submitter ends in between, the job is found by its name.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sweetspot_study::{JOBS, write_atomically};

use super::arrays::Block;
use super::{SlurmError, SlurmOptions};

/// The largest accepted size of a file.
const MAX_BYTES: u64 = 64 << 20;

/// The schema of the file about an array.
const ARRAY_SCHEMA: &str = "sweetspot.slurm-array/1";

/// The schema of the file about the executor.
const EXECUTOR_SCHEMA: &str = "sweetspot.slurm-executor/1";

/// An array of jobs that was submitted, or was about to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayRecord {
    schema: String,
    /// The number of the array in the study, from 1.
    pub number: u32,
    /// The name of its jobs.
    pub name: String,
    /// Slurm's number of the array; absent if the submitter ended before it was known.
    pub job: Option<u64>,
    /// The node that was asked for; absent if Slurm chooses.
    pub node: Option<String>,
    /// The runs of each job.
    pub blocks: Vec<Block>,
    /// Whether the executor itself has cancelled the array.
    #[serde(default)]
    pub withdrawn: bool,
}

/// How the runs of a study are submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecutorFile {
    schema: String,
    options: SlurmOptions,
    /// The node on which all runs are made; absent unless runs are pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
}

/// The folder in which a study on Slurm keeps what it has submitted.
#[derive(Clone, Debug)]
pub struct Ledger {
    folder: PathBuf,
    /// The beginning of the names of all jobs of the study.
    name: String,
}

impl Ledger {
    /// The ledger of the study with this folder and identity.
    pub fn new(study: &Path, identity: &str) -> Self {
        Self {
            folder: study.join(JOBS),
            name: format!("sweetspot-{identity}"),
        }
    }

    /// The options with which the study was started on Slurm, and the node to which it is pinned; `None` if it was not
    /// started on Slurm.
    pub fn executor(&self) -> Result<Option<(SlurmOptions, Option<String>)>, SlurmError> {
        let path = self.folder.join("executor.json");
        match sweetspot_input::read_bytes(&path, MAX_BYTES) {
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => Ok(None),
            read => {
                let file: ExecutorFile = parse(&path, &read.map_err(SlurmError::file(&path))?)?;
                check_schema(&path, &file.schema, EXECUTOR_SCHEMA)?;
                Ok(Some((file.options, file.node)))
            }
        }
    }

    /// Writes down how the runs are submitted.
    pub fn write_executor(
        &self,
        options: &SlurmOptions,
        node: Option<&str>,
    ) -> Result<(), SlurmError> {
        let file = ExecutorFile {
            schema: EXECUTOR_SCHEMA.to_owned(),
            options: options.clone(),
            node: node.map(str::to_owned),
        };
        std::fs::create_dir_all(&self.folder).map_err(SlurmError::file(&self.folder))?;
        write(&self.folder.join("executor.json"), &file)
    }

    /// All arrays that were submitted, in order.
    pub fn arrays(&self) -> Result<Vec<ArrayRecord>, SlurmError> {
        let mut arrays = Vec::new();
        for number in 1.. {
            let path = self.folder.join(format!("{number}.json"));
            let text = match sweetspot_input::read_bytes(&path, MAX_BYTES) {
                Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => break,
                text => text.map_err(SlurmError::file(&path))?,
            };
            let array: ArrayRecord = parse(&path, &text)?;
            check_schema(&path, &array.schema, ARRAY_SCHEMA)?;
            arrays.push(array);
        }
        Ok(arrays)
    }

    /// An array that is not written down yet.
    pub fn planned(&self, number: u32, blocks: Vec<Block>) -> ArrayRecord {
        ArrayRecord {
            schema: ARRAY_SCHEMA.to_owned(),
            number,
            name: format!("{}-{number}", self.name),
            job: None,
            node: None,
            blocks,
            withdrawn: false,
        }
    }

    /// Writes down an array that is about to be submitted, with the file from which its jobs read their runs.
    pub fn begin(
        &self,
        number: u32,
        blocks: Vec<Block>,
        node: Option<String>,
    ) -> Result<ArrayRecord, SlurmError> {
        let array = ArrayRecord {
            node,
            ..self.planned(number, blocks)
        };
        let path = self.runs_file(number);
        let written = write_atomically(&path, run_lines(&array.blocks).as_bytes());
        written.map_err(SlurmError::file(&path))?;
        self.update(&array)?;
        Ok(array)
    }

    /// Writes down what has changed about an array.
    pub fn update(&self, array: &ArrayRecord) -> Result<(), SlurmError> {
        write(&self.folder.join(format!("{}.json", array.number)), array)
    }

    /// Forgets the last array, which Slurm has refused.
    pub fn forget(&self, array: &ArrayRecord) {
        let _ = std::fs::remove_file(self.folder.join(format!("{}.json", array.number)));
        let _ = std::fs::remove_file(self.runs_file(array.number));
    }

    /// The file from which the jobs of an array read their runs: a line for each job.
    pub fn runs_file(&self, number: u32) -> PathBuf {
        self.folder.join(format!("{number}.runs"))
    }

    /// The file with the output of a job; `%a` stands for its number in the array.
    pub fn output_file(&self, number: u32, job: &str) -> PathBuf {
        self.folder.join(format!("{number}-{job}.out"))
    }
}

/// The lines of the file from which jobs read their runs.
fn run_lines(blocks: &[Block]) -> String {
    let mut lines = String::new();
    for block in blocks {
        let words: Vec<String> = block.iter().map(u64::to_string).collect();
        lines.push_str(&words.join(" "));
        lines.push('\n');
    }
    lines
}

/// Writes a file under a temporary name, and renames it once it is on disk.
fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), SlurmError> {
    let written = serde_json::to_vec(value)
        .map_err(std::io::Error::other)
        .and_then(|text| write_atomically(path, &text));
    written.map_err(SlurmError::file(path))
}

/// Reads a value from the text of a file.
fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, SlurmError> {
    serde_json::from_slice(text)
        .map_err(std::io::Error::other)
        .map_err(SlurmError::file(path))
}

/// Refuses a file of another version.
fn check_schema(path: &Path, found: &str, expected: &str) -> Result<(), SlurmError> {
    match found == expected {
        true => Ok(()),
        false => {
            let problem = format!("its schema is {found}, but this program reads {expected}");
            Err(SlurmError::file(path)(std::io::Error::other(problem)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_submitted_is_found_again() {
        let study = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(study.path(), "abc");
        assert_eq!(ledger.executor().unwrap(), None);
        let options = SlurmOptions {
            sbatch: Some("--partition=gpu".to_owned()),
            ..SlurmOptions::default()
        };
        ledger.write_executor(&options, Some("n1")).unwrap();
        assert_eq!(
            ledger.executor().unwrap(),
            Some((options, Some("n1".to_owned())))
        );
        let mut first = ledger.begin(1, vec![vec![3, 1], vec![2]], None).unwrap();
        assert_eq!(first.name, "sweetspot-abc-1");
        let lines = std::fs::read_to_string(ledger.runs_file(1)).unwrap();
        assert_eq!(lines, "3 1\n2\n");
        assert_eq!(ledger.arrays().unwrap(), [first.clone()]);
        first.job = Some(7);
        ledger.update(&first).unwrap();
        let second = ledger
            .begin(2, vec![vec![9]], Some("n2".to_owned()))
            .unwrap();
        assert_eq!(ledger.arrays().unwrap(), [first.clone(), second.clone()]);
        ledger.forget(&second);
        assert_eq!(ledger.arrays().unwrap(), [first]);
        std::fs::write(study.path().join("slurm/1.json"), "{}").unwrap();
        assert!(ledger.arrays().is_err());
    }
}
