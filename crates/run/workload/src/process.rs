//! The command's process: a child of this program, or of the guard process if devices are leased.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat, open};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpgrp, pidfd_open};
use sweetspot_device::{Clock, MonotonicClock};
use sweetspot_guard::{
    CommandExit, Guard, GuardError, GuardMessage, Refusal, Streams, WorkloadCommand, WorkloadEnd,
    exclude_from_reaping, has_descendants, reap_children,
};

use crate::command::{CommandSpec, OutputTarget};
use crate::error::WorkloadError;
use crate::output::OutputPipes;
use crate::signals::pass_signal;

/// How long a process may take to exit after SIGTERM before it is killed.
const END_GRACE_PERIOD: Duration = Duration::from_millis(300);

/// A command that runs as a child of this program.
pub(crate) struct OwnChild {
    child: Child,
    /// A file descriptor that becomes readable when the child has exited; an error if the kernel has no such
    /// descriptors.
    exit: Result<OwnedFd, Errno>,
}

impl OwnChild {
    /// Starts the command as a child of this program.
    pub fn start(
        command: &CommandSpec,
        environment: &[(String, std::ffi::OsString)],
    ) -> Result<(Self, Option<OutputPipes>), WorkloadError> {
        let (program, arguments) = split_command(command)?;
        let mut process = Command::new(program);
        process
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)));
        if command.no_input {
            process.stdin(Stdio::null());
        }
        if let Some(folder) = &command.folder {
            process.current_dir(folder);
        }
        if command.reads_output() {
            process.stdout(Stdio::piped()).stderr(Stdio::piped());
        } else if command.output == OutputTarget::StandardError {
            process.stdout(Stdio::from(std::io::stderr()));
        }
        let mut child = process
            .spawn()
            .map_err(|problem| WorkloadError::not_started(command.program(), &problem))?;
        let pipes = child.stdout.take().zip(child.stderr.take());
        let pipes = pipes.map(|(output, error)| OutputPipes {
            output: Box::new(output),
            error: Box::new(error),
        });
        let pid = Pid::from_child(&child);
        exclude_from_reaping(Some(pid));
        let exit = pidfd_open(pid, PidfdFlags::empty());
        Ok((Self { child, exit }, pipes))
    }

    /// Waits at most `at_most` for the command's exit; `None` if it still runs.
    pub fn wait(&mut self, at_most: Duration) -> Result<Option<WorkloadEnd>, WorkloadError> {
        self.sleep(at_most);
        let at = MonotonicClock.now();
        let status = self.child.try_wait();
        let status = status.map_err(WorkloadError::system(
            "cannot find out how the command exited",
        ))?;
        let Some(status) = status else {
            return Ok(None);
        };
        exclude_from_reaping(None);
        reap_children();
        Ok(Some(WorkloadEnd {
            exit: match (status.code(), status.signal()) {
                (Some(code), _) => CommandExit::Code(code),
                (None, signal) => CommandExit::Signal(signal.unwrap_or(0)),
            },
            at,
            has_descendants: has_descendants(),
        }))
    }

    /// Sleeps until the child exits, but at most `at_most`; only briefly if the kernel cannot signal the
    /// exit.
    fn sleep(&self, at_most: Duration) {
        let Ok(exit) = &self.exit else {
            std::thread::sleep(at_most.min(Duration::from_millis(5)));
            return;
        };
        let mut wait = [PollFd::new(exit, PollFlags::IN)];
        let limit = rustix::time::Timespec {
            tv_sec: at_most.as_secs() as i64,
            tv_nsec: at_most.subsec_nanos().into(),
        };
        let _ = poll(&mut wait, Some(&limit));
    }

    /// Passes a signal on to the command.
    pub fn pass_signal(&self, signal: i32) {
        pass_signal(Pid::from_child(&self.child), signal);
    }
}

/// Ends every descendant of this process: the processes that a command has left running.
pub fn end_descendants() {
    sweetspot_guard::end_descendants(END_GRACE_PERIOD);
}

/// Starts a command as a child of the guard process; the command therefore ends with the lease.
pub(crate) fn start_guarded(
    guard: &mut Guard,
    command: &CommandSpec,
    environment: &[(String, std::ffi::OsString)],
) -> Result<Option<OutputPipes>, WorkloadError> {
    split_command(command)?;
    let mut streams = Streams {
        no_input: command.no_input,
        ..Streams::default()
    };
    let mut pipes = None;
    // The folder is removed when the guard has opened the pipes.
    let mut folder = None;
    if command.reads_output() || command.output == OutputTarget::StandardError {
        // The guard opens the pipes by their names. Standard error itself is not opened this way: a file would be
        // overwritten from its start.
        let made = tempfile::Builder::new().prefix("sweetspot-").tempdir();
        let made = made.map_err(WorkloadError::system(
            "cannot create a folder for the command's output",
        ))?;
        let output = NamedPipe::new(made.path(), "output")?;
        let error = NamedPipe::new(made.path(), "error")?;
        streams.output = Some(output.name());
        streams.error = Some(error.name());
        pipes = Some((output, error));
        folder = Some(made);
    }
    let text = |value: &std::ffi::OsString| value.to_string_lossy().into_owned();
    guard.start_workload(WorkloadCommand {
        command: command
            .words
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect(),
        environment: environment
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect(),
        process_group: getpgrp().as_raw_nonzero().get(),
        streams,
        folder: command
            .folder
            .as_ref()
            .map(|folder| folder.to_string_lossy().into_owned()),
    })?;
    drop(folder);
    let boxed = |pipe: NamedPipe| Box::new(pipe.reader) as Box<dyn Read + Send>;
    Ok(pipes.map(|(output, error)| OutputPipes {
        output: boxed(output),
        error: boxed(error),
    }))
}

/// Waits at most `at_most` for the exit of the guard's command; `None` if it still runs.
pub(crate) fn wait_guarded(
    guard: &mut Guard,
    at_most: Duration,
) -> Result<Option<WorkloadEnd>, WorkloadError> {
    match guard.wait_for(at_most)? {
        Some(GuardMessage::Ended(end)) => Ok(Some(end)),
        Some(GuardMessage::Released(problems)) => {
            guard.keep_problems(problems);
            Ok(None)
        }
        None => Ok(None),
    }
}

/// Ends the guard's command and everything that it started.
pub(crate) fn end_guarded(guard: &mut Guard) -> Result<(), WorkloadError> {
    match guard.end_workload()? {
        true => Ok(()),
        false => Err(GuardError::from(Refusal::WorkloadRemains).into()),
    }
}

/// A pipe that another process of this user can open by its name. It is a file, because a process that was started by
/// root does not show its open files under `/proc`.
struct NamedPipe {
    reader: File,
    path: PathBuf,
}

impl NamedPipe {
    /// Creates the pipe in a folder that only this user can open.
    fn new(folder: &Path, name: &str) -> Result<Self, WorkloadError> {
        let path = folder.join(name);
        let made = mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
        // Without waiting for a writer, because the guard opens the pipe later.
        let opened = made.and_then(|()| {
            let reader = open(
                &path,
                OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            fcntl_setfl(&reader, OFlags::empty())?;
            Ok(reader)
        });
        let reader = opened.map_err(|error| {
            WorkloadError::system("cannot create a pipe for the command's output")(error.into())
        })?;
        Ok(Self {
            reader: File::from(reader),
            path,
        })
    }

    /// The path by which another process can open the pipe for writing.
    fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

/// Splits a command into its program and its arguments.
fn split_command(
    command: &CommandSpec,
) -> Result<(&std::ffi::OsString, &[std::ffi::OsString]), WorkloadError> {
    command
        .words
        .split_first()
        .ok_or_else(|| WorkloadError::NotStarted {
            program: String::new(),
            is_missing: true,
            reason: "no command was given".to_owned(),
        })
}
