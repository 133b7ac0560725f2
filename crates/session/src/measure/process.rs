//! The command as a process: a child of this program, or of a guard.

use std::ffi::OsString;
use std::io::{PipeReader, Read};
use std::os::fd::AsRawFd;
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
    End, Ended, Guard, GuardError, Message, Refusal, Start, Streams, await_end_of, has_descendants,
    reap,
};

use crate::SessionError;
use crate::lease::pass_signal;

/// What is to be started.
pub struct Launch<'a> {
    /// Program and arguments.
    pub words: &'a [OsString],
    /// Variables to add to the environment.
    pub environment: Vec<(String, String)>,
    /// What becomes of its output.
    pub output: Output,
    /// It reads nothing.
    pub no_input: bool,
    /// Where it runs, if not here.
    pub folder: Option<&'a str>,
}

/// What becomes of a command's output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// It goes where this program's goes.
    Inherited,
    /// Standard output is taken: all goes to standard error.
    ToStandardError,
    /// This program reads it.
    Read,
}

/// What a command prints, where this program reads it.
pub struct Outlets {
    pub output: Box<dyn Read + Send>,
    pub error: Box<dyn Read + Send>,
}

/// Starts commands.
pub trait Starter {
    /// Starts one; says also what it prints, where that is read.
    fn start(
        &mut self,
        launch: Launch<'_>,
    ) -> Result<(Box<dyn Process + '_>, Option<Outlets>), SessionError>;
}

/// A command that runs.
pub trait Process {
    /// Waits for its end, but not longer than this.
    fn wait(&mut self, at_most: Duration) -> Result<Option<End>, SessionError>;

    /// Passes on a signal that this program got.
    fn pass(&mut self, signal: i32);

    /// Ends it and everything that it started.
    fn end(&mut self) -> Result<(), SessionError>;
}

/// Starts commands as children of this program.
pub struct OwnChildren;

impl Starter for OwnChildren {
    fn start(
        &mut self,
        launch: Launch<'_>,
    ) -> Result<(Box<dyn Process + '_>, Option<Outlets>), SessionError> {
        let mut command = Command::new(&launch.words[0]);
        command.args(&launch.words[1..]).envs(launch.environment);
        if launch.no_input {
            command.stdin(Stdio::null());
        }
        if let Some(folder) = launch.folder {
            command.current_dir(folder);
        }
        match launch.output {
            Output::Inherited => {}
            Output::ToStandardError => {
                command.stdout(Stdio::from(std::io::stderr()));
            }
            Output::Read => {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
            }
        }
        let mut child = command
            .spawn()
            .map_err(|problem| SessionError::NotStarted {
                program: command.get_program().to_string_lossy().into_owned(),
                problem,
            })?;
        let outlets = child.stdout.take().zip(child.stderr.take());
        let outlets = outlets.map(|(output, error)| Outlets {
            output: Box::new(output),
            error: Box::new(error),
        });
        let pid = Pid::from_child(&child);
        await_end_of(Some(pid));
        let ended = pidfd_open(pid, PidfdFlags::empty());
        Ok((Box::new(OwnChild { child, ended }), outlets))
    }
}

struct OwnChild {
    child: Child,
    ended: Result<OwnedFd, Errno>,
}

impl OwnChild {
    /// Waits until there is something to reap; where the kernel has no such descriptors, looks now and then.
    fn sleep(&self, at_most: Duration) {
        let Ok(ended) = &self.ended else {
            std::thread::sleep(at_most.min(Duration::from_millis(5)));
            return;
        };
        let mut wait = [PollFd::new(ended, PollFlags::IN)];
        let limit = rustix::time::Timespec {
            tv_sec: at_most.as_secs() as i64,
            tv_nsec: at_most.subsec_nanos().into(),
        };
        let _ = poll(&mut wait, Some(&limit));
    }
}

impl Process for OwnChild {
    fn wait(&mut self, at_most: Duration) -> Result<Option<End>, SessionError> {
        self.sleep(at_most);
        let at = MonotonicClock.now();
        let status = self
            .child
            .try_wait()
            .map_err(|problem| SessionError::System {
                what: "the command's end cannot be told",
                problem,
            })?;
        if status.is_some() {
            await_end_of(None);
            reap();
        }
        Ok(status.map(|status| End {
            ended: match (status.code(), status.signal()) {
                (Some(code), _) => Ended::Code(code),
                (None, signal) => Ended::Signal(signal.unwrap_or(0)),
            },
            at,
            left: has_descendants(),
        }))
    }

    fn pass(&mut self, signal: i32) {
        pass_signal(Pid::from_child(&self.child), signal);
    }

    fn end(&mut self) -> Result<(), SessionError> {
        sweetspot_guard::end_all(Duration::from_millis(300));
        Ok(())
    }
}

/// A guard runs commands as its own, so that they end with the lease, and passes signals on by itself.
impl Starter for Guard {
    fn start(
        &mut self,
        launch: Launch<'_>,
    ) -> Result<(Box<dyn Process + '_>, Option<Outlets>), SessionError> {
        let mut streams = Streams {
            no_input: launch.no_input,
            ..Streams::default()
        };
        // The guard opens the pipes by their names; this program's own ends close with this function. Its
        // standard error is not opened so: a file would be written from its begin.
        let pipe = || -> Result<_, SessionError> {
            let (reader, writer) = std::io::pipe().map_err(|problem| SessionError::System {
                what: "no pipe for the command's output",
                problem,
            })?;
            let name = format!("/proc/{}/fd/{}", std::process::id(), writer.as_raw_fd());
            Ok((reader, writer, name))
        };
        let mut pipes = None;
        match launch.output {
            Output::Inherited => {}
            Output::ToStandardError | Output::Read => {
                let ((output, out, out_name), (error, err, err_name)) = (pipe()?, pipe()?);
                streams.output = Some(out_name);
                streams.error = Some(err_name);
                pipes = Some((output, error, out, err));
            }
        }
        let words = launch.words.iter();
        self.run(Start {
            command: words.map(|word| word.as_bytes().to_vec()).collect(),
            environment: launch.environment,
            process_group: getpgrp().as_raw_nonzero().get(),
            streams,
            folder: launch.folder.map(str::to_owned),
        })?;
        let boxed = |reader: PipeReader| Box::new(reader) as Box<dyn Read + Send>;
        let outlets = pipes.map(|(output, error, ..)| Outlets {
            output: boxed(output),
            error: boxed(error),
        });
        Ok((Box::new(Guarded { guard: self }), outlets))
    }
}

struct Guarded<'a> {
    guard: &'a mut Guard,
}

impl Process for Guarded<'_> {
    fn wait(&mut self, at_most: Duration) -> Result<Option<End>, SessionError> {
        match self.guard.wait_for(at_most)? {
            Some(Message::Ended(end)) => Ok(Some(end)),
            Some(Message::Released(problems)) => {
                self.guard.keep(problems);
                Ok(None)
            }
            None => Ok(None),
        }
    }

    fn pass(&mut self, _: i32) {}

    fn end(&mut self) -> Result<(), SessionError> {
        match self.guard.end_workload()? {
            true => Ok(()),
            false => Err(GuardError::from(Refusal::WorkloadRemains).into()),
        }
    }
}

/// As shells tell it.
pub fn exit_code(ended: Ended) -> i32 {
    match ended {
        Ended::Code(code) => code,
        Ended::Signal(signal) => 128 + signal,
    }
}
