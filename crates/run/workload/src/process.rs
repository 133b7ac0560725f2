//! The command's process: a child of this program, or of the guard process if devices are leased.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpgrp, pidfd_open};
use sweetspot_device::{Clock, MonotonicClock};
use sweetspot_guard::{
    CommandExit, Guard, GuardError, GuardMessage, Refusal, Streams, WorkloadCommand, WorkloadEnd,
    exclude_from_reaping, has_descendants, reap_children,
};

use crate::command::{CommandSpec, OutputTarget};
use crate::error::WorkloadError;
use crate::signals::pass_signal;
use crate::streams::OutputStreams;

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
    /// Starts the command as a child of this program; without streams, it inherits those of this program.
    pub fn start(
        command: &CommandSpec,
        environment: &[(String, std::ffi::OsString)],
        streams: Option<&OutputStreams>,
    ) -> Result<Self, WorkloadError> {
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
        if let Some(streams) = streams {
            streams.connect(&mut process)?;
        } else if command.output == OutputTarget::StandardError {
            process.stdout(Stdio::from(std::io::stderr()));
        }
        let child = process
            .spawn()
            .map_err(|problem| WorkloadError::not_started(command.program(), &problem))?;
        let pid = Pid::from_child(&child);
        exclude_from_reaping(Some(pid));
        let exit = pidfd_open(pid, PidfdFlags::empty());
        Ok(Self { child, exit })
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
    streams: Option<&OutputStreams>,
) -> Result<(), WorkloadError> {
    split_command(command)?;
    let (output, error) = streams.map_or((None, None), OutputStreams::paths);
    let streams = Streams {
        no_input: command.no_input,
        output,
        error,
    };
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
    Ok(())
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
