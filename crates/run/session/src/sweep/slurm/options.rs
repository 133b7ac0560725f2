//! What the user chooses about jobs: the options for sbatch, how many jobs, and on which nodes.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use super::SlurmError;

/// On which nodes the runs are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Slurm chooses a node for each job.
    #[default]
    Any,
    /// The repeats of each configuration are on different nodes in turn, and every node has the same share of each
    /// configuration, so that differences between nodes cancel out.
    Spread,
    /// All runs are on one node, so that nodes are not compared at all.
    Pinned,
}

impl std::fmt::Display for Placement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Any => "any",
            Self::Spread => "spread",
            Self::Pinned => "pinned",
        })
    }
}

impl std::str::FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Any, Self::Spread, Self::Pinned]
            .into_iter()
            .find(|placement| placement.to_string() == text)
            .ok_or_else(|| format!("`{text}` is not a choice of nodes: use any, spread or pinned"))
    }
}

/// How often a lost run is submitted again unless the user says otherwise.
const DEFAULT_RESUBMISSIONS: u32 = 3;

/// The options of the executor `slurm`, as the user gave them. An absent value is the default, or that of the study
/// which is resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlurmOptions {
    /// The options for sbatch, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sbatch: Option<String>,
    /// The largest number of jobs that run at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<NonZeroUsize>,
    /// The number of runs that one job makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_per_job: Option<NonZeroUsize>,
    /// On which nodes the runs are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// How often a lost run is submitted again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resubmissions: Option<u32>,
}

impl SlurmOptions {
    /// These options, with those of an earlier call where none is given.
    pub fn or(self, earlier: Self) -> Self {
        Self {
            sbatch: self.sbatch.or(earlier.sbatch),
            max_jobs: self.max_jobs.or(earlier.max_jobs),
            runs_per_job: self.runs_per_job.or(earlier.runs_per_job),
            placement: self.placement.or(earlier.placement),
            resubmissions: self.resubmissions.or(earlier.resubmissions),
        }
    }

    /// On which nodes the runs are made.
    pub fn placement(&self) -> Placement {
        self.placement.unwrap_or_default()
    }

    /// How often a lost run is submitted again.
    pub fn resubmissions(&self) -> u32 {
        self.resubmissions.unwrap_or(DEFAULT_RESUBMISSIONS)
    }

    /// The number of runs that one job makes. A simulated run takes less time than the start of a job, so that jobs make
    /// many of them.
    pub fn runs_per_job(&self, runs: usize, is_simulated: bool) -> usize {
        /// The number of jobs into which the runs of a simulated study are divided.
        const SIMULATED_JOBS: usize = 64;
        /// The most simulated runs of one job.
        const MAX_SIMULATED_RUNS: usize = 1000;
        match (self.runs_per_job, is_simulated) {
            (Some(given), _) => given.get(),
            (None, true) => runs.div_ceil(SIMULATED_JOBS).clamp(1, MAX_SIMULATED_RUNS),
            (None, false) => 1,
        }
    }

    /// The options for sbatch as separate words. Options that the executor itself sets are refused.
    pub fn sbatch_words(&self) -> Result<Vec<String>, SlurmError> {
        let words = split_words(self.sbatch.as_deref().unwrap_or_default())?;
        let mut expects_value = false;
        for word in &words {
            let (name, has_value) = match word.split_once('=') {
                Some((name, _)) if name.starts_with("--") => (name, true),
                _ => (word.as_str(), false),
            };
            if let Some((_, _, why)) = RESERVED.iter().find(|(long, short, _)| {
                name == *long
                    || !short.is_empty() && name.starts_with(short) && !name.starts_with("--")
            }) {
                return Err(SlurmError::Options(format!(
                    "{name} cannot be given: {why}"
                )));
            }
            if !word.starts_with('-') && !expects_value {
                return Err(SlurmError::Options(format!(
                    "`{word}` is not an option: write options as in --slurm '--partition=gpu --gres=gpu:1'"
                )));
            }
            expects_value = word.starts_with('-') && !has_value && !expects_value;
        }
        Ok(words)
    }
}

/// The options of sbatch that the executor sets itself: long and short form, and what the user can do instead.
const RESERVED: [(&str, &str, &str); 8] = [
    (
        "--array",
        "-a",
        "the study decides the array (--max-jobs limits it)",
    ),
    (
        "--job-name",
        "-J",
        "jobs of the study are found by their name",
    ),
    (
        "--output",
        "-o",
        "the output of jobs is in the folder `slurm` of the study",
    ),
    (
        "--error",
        "-e",
        "the output of jobs is in the folder `slurm` of the study",
    ),
    ("--wrap", "", "jobs run `sweetspot task`"),
    ("--wait", "-W", "the sweep waits itself"),
    (
        "--parsable",
        "",
        "the sweep reads the output of sbatch itself",
    ),
    ("--test-only", "", "use --dry-run"),
];

/// The partition that options for sbatch name; `None` if it is the default one.
pub fn partition(words: &[String]) -> Option<String> {
    let mut words = words.iter();
    let mut found = None;
    while let Some(word) = words.next() {
        if let Some(name) = word.strip_prefix("--partition=") {
            found = Some(name.to_owned());
        } else if word == "--partition" || word == "-p" {
            found = words.next().cloned();
        } else if let Some(name) = word.strip_prefix("-p").filter(|_| !word.starts_with("--")) {
            found = Some(name.to_owned());
        }
    }
    found
}

/// Splits a line into words as a shell does, with quotes and without any other meaning of characters.
fn split_words(line: &str) -> Result<Vec<String>, SlurmError> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            _ if letter.is_control() => {
                let text = "the options have a line break or another control character";
                return Err(SlurmError::Options(text.to_owned()));
            }
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if let Some(quote) = quote {
        return Err(SlurmError::Options(format!("a closing {quote} is missing")));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<String>, String> {
        let options = SlurmOptions {
            sbatch: Some(line.to_owned()),
            ..SlurmOptions::default()
        };
        options.sbatch_words().map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_split_as_in_a_shell() {
        let line = "--partition=gpu  -A 'my account' --comment=\"a 'b'\" --qos=";
        let expected = [
            "--partition=gpu",
            "-A",
            "my account",
            "--comment=a 'b'",
            "--qos=",
        ];
        assert_eq!(words(line).unwrap(), expected);
        assert_eq!(words("").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn options_that_would_break_the_study_are_refused() {
        for (line, expected) in [
            ("--array=1-5", "--array cannot be given"),
            ("-a 1-5", "-a cannot be given"),
            ("-a1-5", "cannot be given"),
            ("--wrap=true", "--wrap cannot be given"),
            ("--time=1 script.sh", "`script.sh` is not an option"),
            ("--comment='a", "a closing ' is missing"),
            ("--comment=a\nb", "control character"),
        ] {
            let problem = words(line).unwrap_err();
            assert!(problem.contains(expected), "{line}: {problem}");
        }
        // They begin like refused ones, and are others.
        for line in ["--account=a", "--exclusive", "--wckey=x", "-A x -N 1"] {
            words(line).unwrap();
        }
    }

    #[test]
    fn the_partition_is_found_in_every_form() {
        for line in [
            "--partition=a",
            "--partition a",
            "-p a",
            "-pa",
            "-p b --partition=a",
        ] {
            assert_eq!(
                partition(&words(line).unwrap()).as_deref(),
                Some("a"),
                "{line}"
            );
        }
        assert_eq!(partition(&words("--time=1").unwrap()), None);
    }

    #[test]
    fn a_job_makes_one_run_of_a_command_and_many_simulated_ones() {
        let options = SlurmOptions::default();
        assert_eq!(options.runs_per_job(10_000, false), 1);
        assert_eq!(options.runs_per_job(64, true), 1);
        assert_eq!(options.runs_per_job(6_400, true), 100);
        assert_eq!(options.runs_per_job(1_000_000, true), 1000);
    }
}
