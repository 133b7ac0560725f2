//! Why a study cannot run on Slurm.

use std::path::PathBuf;

/// Why a study cannot run on Slurm.
#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    /// A command of Slurm is not installed on this machine.
    #[error(
        "`{0}` was not found: load your site's Slurm module, or install Slurm's client commands"
    )]
    NotInstalled(&'static str),
    /// A command of Slurm failed.
    #[error("`{command}` failed: {problem}")]
    Command {
        /// The name of the command.
        command: &'static str,
        /// What the command printed.
        problem: String,
    },
    /// A command of Slurm ended without an answer, so that nobody knows whether it has done what it was asked.
    #[error("`{command}` did not answer: {problem}")]
    Unanswered {
        /// The name of the command.
        command: &'static str,
        /// How it ended.
        problem: String,
    },
    /// Slurm does not accept the job.
    #[error("Slurm refused the job: {problem}{}", remedy(.problem))]
    Refused {
        /// What Slurm printed.
        problem: String,
    },
    /// The options for sbatch cannot be used.
    #[error("--slurm: {0}")]
    Options(String),
    /// The folder of the study is not visible on the nodes, or what the nodes write there is not visible here.
    #[error(
        "the folder {} is not shared with the nodes: job {job} on {node} ran, but left nothing there; choose a folder on a shared file system with --study",
        .folder.display()
    )]
    NotShared {
        /// The folder that was tried.
        folder: PathBuf,
        /// The job that tried it.
        job: u64,
        /// The node on which the job ran.
        node: String,
    },
    /// The program is not installed on the nodes.
    #[error(
        "`sweetspot` was not found on {node}: install it there at {}, or in a folder of PATH",
        .program.display()
    )]
    NoProgram {
        /// The node on which the job ran.
        node: String,
        /// The path of the program on this machine.
        program: PathBuf,
    },
    /// The nodes have another version of the program.
    #[error(
        "{node} has sweetspot {there} and this machine {here}: install the same version on both"
    )]
    OtherVersion {
        /// The node on which the job ran.
        node: String,
        /// The version on the node.
        there: String,
        /// The version on this machine.
        here: &'static str,
    },
    /// The study cannot be planned on a node.
    #[error("on {node}: {problem}")]
    OnNode {
        /// The node on which the job ran.
        node: String,
        /// The message of the program there.
        problem: String,
    },
    /// The first job ended without a result.
    #[error("job {job} ended before it could check the folder {}: {state}", .folder.display())]
    ProbeLost {
        /// The job.
        job: u64,
        /// Its state when it ended.
        state: String,
        /// The folder that was to be checked.
        folder: PathBuf,
    },
    /// The runs cannot be placed, because no node of the partition is up.
    #[error("no node of the partition is up: `sinfo` shows the nodes and why they are down")]
    NoNodes,
    /// A study on Slurm needs a folder that the nodes can write to.
    #[error("a study on Slurm is stored in a folder: remove --no-study")]
    NoStore,
    /// Jobs of the study are in the queue, so its runs cannot be made here.
    #[error(
        "{jobs} jobs of this study are in Slurm's queue: resume it with --executor slurm, or cancel them with `scancel --name={name}`"
    )]
    JobsInQueue {
        /// How many jobs are pending or running.
        jobs: usize,
        /// The names of the jobs.
        name: String,
    },
    /// A study cannot be pinned to a node, because its runs were not all made on one.
    #[error(
        "the stored runs were made on {0}, so that they cannot all be on one node: remove --nodes pinned, or start a new study with it"
    )]
    NotPinned(String),
    /// A study cannot be pinned to a node while its jobs may run on others.
    #[error(
        "{jobs} jobs of this study that may run on any node are in Slurm's queue: cancel them with `scancel --name={name}`, or remove --nodes pinned"
    )]
    JobsElsewhere {
        /// How many jobs are pending or running.
        jobs: usize,
        /// The names of the jobs.
        name: String,
    },
    /// Somebody cancelled jobs, so that runs are missing.
    #[error("{runs} runs are missing because their jobs were cancelled")]
    Cancelled {
        /// How many runs are missing.
        runs: usize,
    },
    /// The reference run was lost too often.
    #[error("the reference could not be run: {0}")]
    ReferenceLost(String),
    /// A file of the study's folder cannot be read or written.
    #[error("cannot access {}: {problem}", .path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The operating system's error.
        problem: std::io::Error,
    },
}

/// What to do about a job that Slurm refused; empty if nothing is known.
fn remedy(problem: &str) -> &'static str {
    let problem = problem.to_lowercase();
    if problem.contains("partition") {
        " (`sinfo` lists the partitions)"
    } else if problem.contains("account") {
        " (`sacctmgr show associations` lists your accounts)"
    } else {
        ""
    }
}

impl SlurmError {
    /// Whether the same command may succeed later: the controller did not respond, as while it is restarted.
    pub(super) fn is_outage(&self) -> bool {
        matches!(self, Self::Command { .. } | Self::Unanswered { .. })
    }

    /// Creates the error that a file cannot be read or written.
    pub(super) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |problem| Self::File { path, problem }
    }
}
