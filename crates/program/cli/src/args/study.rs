//! The flags of `study` and `task`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sweetspot_study::EnergyOf;

use super::shared::{CriteriaArgs, ExportArgs, PreferArgs};

/// Manage studies: list, show, export, gather, merge, delete.
#[derive(Debug, Args)]
pub struct StudyArgs {
    #[command(subcommand)]
    pub command: StudyCommand,
}

#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// List the studies in a folder.
    List {
        /// The folder that contains the studies.
        #[arg(default_value = "studies")]
        folder: PathBuf,
    },
    /// Show the definition of a study and all its runs.
    Show {
        /// The study: its folder, or its name below studies/.
        study: PathBuf,
    },
    /// Export the results of a study to files.
    Export {
        /// The study: its folder, or its name below studies/.
        study: PathBuf,
        /// Which energy to use: job-gpus, all-gpus, node [default: as in the study].
        #[arg(long, value_name = "WHOSE")]
        energy_of: Option<EnergyOf>,
        #[command(flatten)]
        criteria: Box<CriteriaArgs>,

        #[command(flatten)]
        prefer: PreferArgs,
        #[command(flatten)]
        export: ExportArgs,
    },
    /// Add the results of single tasks to their study.
    Gather {
        /// The study: its folder, or its name below studies/.
        study: PathBuf,
    },
    /// Merge several studies of the same workload into a new one.
    Merge {
        /// The studies: their folders, or their names below studies/.
        #[arg(required = true, num_args = 2.., value_name = "STUDY")]
        studies: Vec<PathBuf>,
        /// The folder of the new study.
        #[arg(long, short, value_name = "FOLDER")]
        output: PathBuf,
    },
    /// Delete studies with all their files.
    Delete {
        /// The study: its folder, or its name below studies/.
        #[arg(required = true, value_name = "STUDY")]
        studies: Vec<PathBuf>,
        /// Delete without asking.
        #[arg(long, short)]
        yes: bool,
    },
}

/// Execute single runs of a study, for batch systems.
///
/// Batch systems start runs as jobs. Writes each result to tasks/ID.json and the power samples to
/// samples/ID.parquet in the study's folder; `study gather` and `sweep --resume` add them to the study.
#[derive(Debug, Args)]
pub struct TaskArgs {
    /// The folder of the study, or its plan.json.
    pub plan: PathBuf,

    /// The numbers of the runs in the plan.
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<u64>,

    /// Never change a device setting (also SWEETSPOT_READ_ONLY=1).
    #[arg(long)]
    pub read_only: bool,
}
