//! Calls the commands of Slurm.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use sweetspot_workload::SignalSource;

use super::SlurmError;
use super::queue::{
    Limits, QUEUE_FORMAT, QueuedTask, parse_exit_code, parse_job, parse_limits, parse_nodes,
    parse_problem, parse_queue,
};
use super::wait::{Wait, wait_for};

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
#[derive(Clone, Default)]
pub struct SlurmCommands {
    /// The signals that end the wait for a command; without them they have their default action, which ends this
    /// program.
    signals: Option<SignalSource>,
}

impl SlurmCommands {
    /// The commands of Slurm, for which nobody waits after a signal.
    pub fn with_signals(signals: &SignalSource) -> Self {
        Self {
            signals: Some(signals.clone()),
        }
    }

    /// Asks Slurm whether it would accept a job, without submitting it.
    pub fn test(&self, job: &JobRequest) -> Result<(), SlurmError> {
        let mut sbatch = Command::new("sbatch");
        sbatch.arg("--test-only").args(&job.options);
        refused(self.call("sbatch", sbatch, Some(&job.script), Wait::Query)).map(drop)
    }

    /// The exit code of a job that ended not long ago; `None` if Slurm does not know it.
    pub fn exit_code(&self, job: u64) -> Option<i32> {
        let mut scontrol = Command::new("scontrol");
        scontrol.args(["show", "job"]).arg(job.to_string());
        parse_exit_code(&self.call("scontrol", scontrol, None, Wait::Query).ok()?)
    }

    /// Calls a command and returns what it prints.
    fn call(
        &self,
        name: &'static str,
        mut command: Command,
        input: Option<&str>,
        wait: Wait,
    ) -> Result<String, SlurmError> {
        tracing::debug!(?command, "calling Slurm");
        let failed = |problem: std::io::Error| match problem.kind() {
            std::io::ErrorKind::NotFound => SlurmError::NotInstalled(name),
            _ => SlurmError::Command {
                command: name,
                problem: problem.to_string(),
            },
        };
        let child = start(&mut command, input).map_err(failed)?;
        let unanswered = |why: &str| SlurmError::Unanswered {
            command: name,
            problem: why.to_owned(),
        };
        let output =
            wait_for(child, wait, self.signals.as_ref()).map_err(|why| unanswered(&why))?;
        let problem = parse_problem(&String::from_utf8_lossy(&output.stderr));
        match output.status.code() {
            Some(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            // The controller may have done what was asked without having said so in time.
            Some(_) if problem.contains("timed out") => Err(unanswered(&problem)),
            Some(_) => Err(SlurmError::Command {
                command: name,
                problem,
            }),
            None => Err(unanswered(&format!("it ended with {}", output.status))),
        }
    }
}

impl Scheduler for SlurmCommands {
    fn limits(&mut self) -> Result<Limits, SlurmError> {
        let mut scontrol = Command::new("scontrol");
        scontrol.args(["show", "config"]);
        Ok(parse_limits(&self.call(
            "scontrol",
            scontrol,
            None,
            Wait::Query,
        )?))
    }

    fn submit(&mut self, job: &JobRequest) -> Result<u64, SlurmError> {
        let mut sbatch = Command::new("sbatch");
        sbatch.arg("--parsable").args(&job.options);
        let called = self.call("sbatch", sbatch, Some(&job.script), Wait::Change);
        let printed = refused(called)?;
        parse_job(&printed).ok_or_else(|| SlurmError::Unanswered {
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
        Ok(parse_queue(&self.call(
            "squeue",
            squeue,
            None,
            Wait::Query,
        )?))
    }

    fn cancel(&mut self, jobs: &[u64]) -> Result<(), SlurmError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let mut scancel = Command::new("scancel");
        scancel.arg("--quiet").args(jobs.iter().map(u64::to_string));
        self.call("scancel", scancel, None, Wait::Change).map(drop)
    }

    fn nodes(&mut self, partition: Option<&str>) -> Result<Vec<String>, SlurmError> {
        let mut sinfo = Command::new("sinfo");
        sinfo.args(["--noheader", "--Node", "--format=%N|%t|%P"]);
        sinfo.args(partition.map(|name| format!("--partition={name}")));
        let printed = self.call("sinfo", sinfo, None, Wait::Query)?;
        Ok(parse_nodes(&printed, partition))
    }
}

/// Calls a command of Slurm from a hook, and returns what it prints, or why it failed.
pub fn call_from_hook(program: &'static str, words: &[&str]) -> Result<String, SlurmError> {
    let mut command = Command::new(program);
    command.args(words);
    SlurmCommands::default().call(program, command, None, Wait::Hook)
}

/// Turns the failure of sbatch into the error that Slurm does not accept the job. A controller that cannot be reached has
/// not refused anything.
fn refused(called: Result<String, SlurmError>) -> Result<String, SlurmError> {
    called.map_err(|error| match error {
        SlurmError::Command { problem, .. } if !problem.contains("contact slurm controller") => {
            SlurmError::Refused { problem }
        }
        other => other,
    })
}

/// Starts a command and writes its input.
fn start(command: &mut Command, input: Option<&str>) -> std::io::Result<Child> {
    let stdin = match input {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    };
    let mut child = command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C is for this program alone: sbatch must not end before it has said what it has submitted.
        .process_group(0)
        .spawn()?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A script fits into the pipe, so that this does not wait. A command that does not read it says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    Ok(child)
}
