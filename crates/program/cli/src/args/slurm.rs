//! The flags of `slurm`, and those of `sweep` about Slurm.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sweetspot_service::SOCKET;
use sweetspot_service::policy::POLICY_FILE;
use sweetspot_session::Placement;

/// Who makes the runs of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExecutorName {
    /// This machine.
    Local,
    /// Jobs of Slurm.
    Slurm,
}

/// The flags of `sweep` about Slurm.
#[derive(Debug, Args)]
pub struct SlurmSweepArgs {
    /// Who makes the runs: local (this machine) or slurm (jobs on the nodes of a cluster, which need a shared folder)
    /// [default: local, or as the study that is resumed].
    #[arg(
        long,
        value_name = "NAME",
        value_enum,
        hide_possible_values = true,
        help_heading = "Slurm"
    )]
    pub executor: Option<ExecutorName>,

    /// Options for sbatch: '--partition=gpu --gres=gpu:2 --time=01:00:00'.
    #[arg(
        long,
        value_name = "OPTIONS",
        allow_hyphen_values = true,
        help_heading = "Slurm"
    )]
    pub slurm: Option<String>,

    /// Maximum number of jobs that run at the same time [default: as many as Slurm starts].
    #[arg(long, value_name = "N", help_heading = "Slurm")]
    pub max_jobs: Option<NonZeroUsize>,

    /// Number of runs that each job makes, so that short runs are not dominated by the start of jobs [default: 1 for a
    /// command].
    #[arg(long, value_name = "N", help_heading = "Slurm")]
    pub runs_per_job: Option<NonZeroUsize>,

    /// On which nodes: any, spread (the repeats of a configuration on different nodes, all nodes alike), pinned (all
    /// runs on one node) [default: any].
    #[arg(long, value_name = "WHICH", help_heading = "Slurm")]
    pub nodes: Option<Placement>,

    /// How often a run whose job was lost (node failure, preemption, time limit) is submitted again [default: 3].
    #[arg(long, value_name = "N", help_heading = "Slurm")]
    pub resubmit: Option<u32>,

    /// On Ctrl-C, cancel the jobs [default: they go on, and --resume finds them].
    #[arg(long, help_heading = "Slurm")]
    pub cancel_jobs: bool,
}

/// Set caps that Slurm jobs ask for, from Prolog and Epilog.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SlurmArgs {
    #[command(subcommand)]
    pub command: SlurmCommand,
}

/// The examples in the help text of `slurm`.
const EXAMPLES: &str = "\
In slurm.conf, where the scripts run these commands as root on each node:
  Prolog=/etc/slurm/prolog.d/sweetspot    exec sweetspot slurm prolog
  Epilog=/etc/slurm/epilog.d/sweetspot    exec sweetspot slurm epilog
Users then ask for a cap with the comment of their job:
  sbatch --comment=sweetspot:power-cap=200 job.sh
  sbatch --comment=sweetspot:core-clock=1200 job.sh
  sbatch --comment=sweetspot:objective=edp job.sh";

#[derive(Debug, Subcommand)]
pub enum SlurmCommand {
    /// Set what a job asks for on its GPUs; runs as root before the job.
    Prolog(SlurmHookArgs),
    /// Restore the GPUs of a job and record their energy; runs as root after the job.
    Epilog(SlurmHookArgs),
    /// Print the settings that `tune` chose, as the user of a job; the prolog runs it itself.
    #[command(hide = true)]
    Choice(SlurmChoiceArgs),
    /// Write the record of a job from standard input, as the user of a job; the hooks run it themselves.
    #[command(hide = true)]
    WriteRecord {
        /// The file to write.
        file: PathBuf,
    },
    /// Answer the first job of a study; `sweep` submits it itself.
    #[command(hide = true)]
    Probe {
        /// The folder with the question.
        folder: PathBuf,
    },
}

/// The flags of the search for a stored choice.
#[derive(Debug, Args)]
pub struct SlurmChoiceArgs {
    /// The objective.
    pub objective: String,
    /// The product name of the GPUs.
    pub gpu: String,
    /// The number of GPUs.
    pub gpus: usize,
    /// A folder with choices besides that of the user.
    #[arg(long)]
    pub folder: Option<PathBuf>,
    /// A part of the workload's name.
    #[arg(long)]
    pub workload: Option<String>,
}

/// The flags of `slurm prolog` and `slurm epilog`.
#[derive(Debug, Args)]
pub struct SlurmHookArgs {
    /// The socket of the service.
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    pub socket: PathBuf,

    /// The policy file, whose part slurm says what happens to a job whose request is refused.
    #[arg(long, value_name = "FILE", default_value = POLICY_FILE)]
    pub policy: PathBuf,
}
