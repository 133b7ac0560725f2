//! Calls the commands of Slurm.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use super::SlurmError;
use super::queue::{
    Limits, QUEUE_FORMAT, QueuedTask, parse_exit_code, parse_job, parse_limits, parse_nodes,
    parse_problem, parse_queue,
};

/// A job to submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRequest {
    /// The options for sbatch, those of the user included.
    pub options: Vec<String>,
    /// The script that the job runs.
    pub script: String,
}

/// The scheduler to which jobs are submitted.
pub trait Scheduler {
    /// The limits of the site.
    fn limits(&mut self) -> Result<Limits, SlurmError>;
    /// Submits a job and returns its number.
    fn submit(&mut self, job: &JobRequest) -> Result<u64, SlurmError>;
    /// The jobs of these names: those that exist, and those that ended not long ago.
    fn queue(&mut self, names: &[String]) -> Result<Vec<QueuedTask>, SlurmError>;
    /// Cancels jobs; a job that has ended is left alone.
    fn cancel(&mut self, jobs: &[u64]) -> Result<(), SlurmError>;
    /// The nodes of a partition that are up.
    fn nodes(&mut self, partition: Option<&str>) -> Result<Vec<String>, SlurmError>;
}

/// Slurm's own commands.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlurmCommands;

impl SlurmCommands {
    /// Asks Slurm whether it would accept a job, without submitting it.
    pub fn test(&self, job: &JobRequest) -> Result<(), SlurmError> {
        let mut sbatch = Command::new("sbatch");
        sbatch.arg("--test-only").args(&job.options);
        refused(call("sbatch", sbatch, Some(&job.script))).map(drop)
    }

    /// The exit code of a job that ended not long ago; `None` if Slurm does not know it.
    pub fn exit_code(&self, job: u64) -> Option<i32> {
        let mut scontrol = Command::new("scontrol");
        scontrol.args(["show", "job"]).arg(job.to_string());
        parse_exit_code(&call("scontrol", scontrol, None).ok()?)
    }
}

impl Scheduler for SlurmCommands {
    fn limits(&mut self) -> Result<Limits, SlurmError> {
        let mut scontrol = Command::new("scontrol");
        scontrol.args(["show", "config"]);
        Ok(parse_limits(&call("scontrol", scontrol, None)?))
    }

    fn submit(&mut self, job: &JobRequest) -> Result<u64, SlurmError> {
        let mut sbatch = Command::new("sbatch");
        sbatch.arg("--parsable").args(&job.options);
        let printed = refused(call("sbatch", sbatch, Some(&job.script)))?;
        parse_job(&printed).ok_or_else(|| SlurmError::Command {
            command: "sbatch",
            problem: format!("it printed no job number, but `{}`", printed.trim()),
        })
    }

    fn queue(&mut self, names: &[String]) -> Result<Vec<QueuedTask>, SlurmError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut squeue = Command::new("squeue");
        squeue
            .args(["--noheader", "--array", "--states=all"])
            .arg(format!("--format={QUEUE_FORMAT}"))
            .arg(format!("--user={}", rustix::process::getuid().as_raw()))
            .arg(format!("--name={}", names.join(",")));
        Ok(parse_queue(&call("squeue", squeue, None)?))
    }

    fn cancel(&mut self, jobs: &[u64]) -> Result<(), SlurmError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let mut scancel = Command::new("scancel");
        scancel.arg("--quiet").args(jobs.iter().map(u64::to_string));
        call("scancel", scancel, None).map(drop)
    }

    fn nodes(&mut self, partition: Option<&str>) -> Result<Vec<String>, SlurmError> {
        let mut sinfo = Command::new("sinfo");
        sinfo.args(["--noheader", "--Node", "--format=%N|%t|%P"]);
        sinfo.args(partition.map(|name| format!("--partition={name}")));
        Ok(parse_nodes(&call("sinfo", sinfo, None)?, partition))
    }
}

/// Turns the failure of sbatch into the error that Slurm does not accept the job.
fn refused(called: Result<String, SlurmError>) -> Result<String, SlurmError> {
    called.map_err(|error| match error {
        SlurmError::Command { problem, .. } => SlurmError::Refused { problem },
        other => other,
    })
}

/// Calls a command and returns what it prints.
fn call(
    name: &'static str,
    mut command: Command,
    input: Option<&str>,
) -> Result<String, SlurmError> {
    tracing::debug!(?command, "calling Slurm");
    let output = run(&mut command, input).map_err(|problem| match problem.kind() {
        std::io::ErrorKind::NotFound => SlurmError::NotInstalled(name),
        _ => SlurmError::Command {
            command: name,
            problem: problem.to_string(),
        },
    })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(SlurmError::Command {
            command: name,
            problem: parse_problem(&String::from_utf8_lossy(&output.stderr)),
        }),
    }
}

/// Starts a command, writes its input and waits for it.
fn run(command: &mut Command, input: Option<&str>) -> std::io::Result<Output> {
    let stdin = match input {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    };
    let mut child = command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A script fits into the pipe, so that this does not wait. A command that does not read it says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}
