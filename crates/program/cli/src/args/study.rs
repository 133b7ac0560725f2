//! Of `study` and `task`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sweetspot_study::EnergyOf;

use super::shared::{ExportArgs, QuestionArgs};

/// Look after studies: list, show, export, merge, delete.
#[derive(Debug, Args)]
pub struct StudyArgs {
    #[command(subcommand)]
    pub command: StudyCommand,
}

#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// The studies in a folder.
    List {
        /// Where to look.
        #[arg(default_value = "studies")]
        folder: PathBuf,
    },
    /// What a study is, and every run of it.
    Show {
        /// Its folder.
        study: PathBuf,
    },
    /// The results of a study as documents.
    Export {
        /// Its folder.
        study: PathBuf,
        /// Whose energy counts: job-gpus, all-gpus, node [default: as when it was made].
        #[arg(long, value_name = "WHOSE")]
        energy_of: Option<EnergyOf>,
        #[command(flatten)]
        question: Box<QuestionArgs>,
        #[command(flatten)]
        export: ExportArgs,
    },
    /// Take in what single tasks have left.
    Gather {
        /// Its folder.
        study: PathBuf,
    },
    /// Put the runs of several studies of the same workload into a new one.
    Merge {
        /// Their folders.
        #[arg(required = true, num_args = 2.., value_name = "STUDY")]
        studies: Vec<PathBuf>,
        /// The new one's folder.
        #[arg(long, short, value_name = "FOLDER")]
        output: PathBuf,
    },
    /// Remove a study and all its files.
    Delete {
        /// Its folder.
        #[arg(required = true, value_name = "STUDY")]
        studies: Vec<PathBuf>,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
}

/// Make one run of a study, and leave its result for `sweep --resume` to take in.
///
/// What a sweep does run by run, on its own: for a batch system that starts each run as a job. The result goes
/// to tasks/ID.json in the study's folder, samples to samples/ID.parquet.
#[derive(Debug, Args)]
pub struct TaskArgs {
    /// The study's folder, or its plan.json.
    pub plan: PathBuf,

    /// The run's number.
    pub id: u64,

    /// Change no device setting (also SWEETSPOT_READ_ONLY=1).
    #[arg(long)]
    pub read_only: bool,
}
