//! The streams of a command whose output this program reads: pipes, or pseudo-terminals where this program's own output
//! is a terminal.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat, open};
use tempfile::TempDir;

use crate::command::{CommandSpec, OutputTarget};
use crate::error::WorkloadError;
use crate::terminal::{OwnStream, PseudoTerminal, TerminalWindow};

/// The ends from which a command's output is read.
pub(crate) struct OutputEnds {
    /// Standard output; `None` if the command inherits that of this program.
    pub output: Option<Box<dyn Read + Send>>,
    /// Standard error; `None` if the command inherits that of this program, or writes both to the same stream.
    pub error: Option<Box<dyn Read + Send>>,
    /// The sizes of pseudo-terminals, to be kept up to date.
    pub windows: Vec<TerminalWindow>,
}

/// The streams to which a command will write.
pub(crate) struct OutputStreams {
    output: Channel,
    /// Standard error; `None` if both are written to the same stream.
    error: Option<Channel>,
    /// The folder with the named pipes. It is removed when the guard has opened them.
    _folder: Option<TempDir>,
}

/// A stream to which a command writes.
enum Channel {
    /// The stream of this program itself.
    Inherited,
    Pipe(PipeReader, PipeWriter),
    Named(NamedPipe),
    Terminal(PseudoTerminal),
}

impl OutputStreams {
    /// Creates the streams of a command; `None` if the command inherits those of this program. A guard opens streams by
    /// their names.
    pub fn create(command: &CommandSpec, is_guarded: bool) -> Result<Option<Self>, WorkloadError> {
        // Standard error itself has no name that the guard could open: a file would be overwritten from its start.
        let is_needed = is_guarded && command.output == OutputTarget::StandardError;
        let is_read = command.reads_output() || is_needed;
        // The status line is on standard error.
        let shares_terminal = command.has_status_line && OwnStream::Error.is_terminal();
        if !is_read && !shares_terminal {
            return Ok(None);
        }
        let folder = is_guarded.then(|| tempfile::Builder::new().prefix("sweetspot-").tempdir());
        let folder = folder.transpose().map_err(WorkloadError::system(
            "cannot create a folder for the command's output",
        ))?;
        let (output, error) = match command.output {
            OutputTarget::StandardOutput => (Some(OwnStream::Output), Some(OwnStream::Error)),
            OutputTarget::StandardError => (Some(OwnStream::Error), Some(OwnStream::Error)),
            OutputTarget::Hidden => (None, None),
        };
        // A pattern is searched in the output as it is without a terminal.
        let has_terminal = command.progress.is_recognised() || shares_terminal && !is_read;
        let create = |shown_on: Option<OwnStream>, name: &str| {
            let terminal = shown_on.filter(|stream| has_terminal && stream.is_terminal());
            if terminal.is_none() && !is_read {
                return Ok(Channel::Inherited);
            }
            let path = folder.as_ref().map(TempDir::path);
            Channel::create(terminal, path, name)
        };
        // If both are shown in the same place, one stream keeps their order. A pattern searches each on its own.
        let is_same = match (output, error) {
            (Some(output), Some(error)) => output.is_same(error),
            _ => true,
        };
        Ok(Some(Self {
            output: create(output, "output")?,
            error: match has_terminal && is_same {
                true => None,
                false => Some(create(error, "error")?),
            },
            _folder: folder,
        }))
    }

    /// Whether the command writes to a pipe, into which programs write late unless they are told otherwise.
    pub fn has_pipe(&self) -> bool {
        let mut channels = [Some(&self.output), self.error.as_ref()].into_iter();
        let is_pipe = |channel: &Channel| matches!(channel, Channel::Pipe(..) | Channel::Named(_));
        channels.any(|channel| channel.is_some_and(is_pipe))
    }

    /// Lets a child of this program write to the streams.
    pub fn connect(&self, command: &mut Command) -> Result<(), WorkloadError> {
        let writer = |channel: &Channel| {
            let writer = channel.writer();
            writer.map_err(WorkloadError::system("cannot open the command's output"))
        };
        if let Some(output) = writer(&self.output)? {
            command.stdout(output);
        }
        if let Some(error) = writer(self.error.as_ref().unwrap_or(&self.output))? {
            command.stderr(error);
        }
        Ok(())
    }

    /// The paths by which the guard opens the streams: of standard output and of standard error.
    pub fn paths(&self) -> (Option<String>, Option<String>) {
        let error = self.error.as_ref().unwrap_or(&self.output);
        (self.output.path(), error.path())
    }

    /// Closes this program's ends for writing, once the command has started, and returns those for reading.
    pub fn into_ends(self) -> OutputEnds {
        let mut windows = Vec::new();
        let output = self.output.into_reader(&mut windows);
        let error = self.error.and_then(|error| error.into_reader(&mut windows));
        OutputEnds {
            output,
            error,
            windows,
        }
    }
}

impl Channel {
    /// Creates a pseudo-terminal if the output is shown on a terminal, or else a pipe: in this folder, or without a
    /// name.
    fn create(
        terminal: Option<OwnStream>,
        folder: Option<&Path>,
        name: &str,
    ) -> Result<Self, WorkloadError> {
        let created = terminal.map(PseudoTerminal::new);
        match created {
            Some(Ok(terminal)) => return Ok(Self::Terminal(terminal)),
            Some(Err(problem)) => {
                tracing::warn!(%problem, "no pseudo-terminal: the command writes to a pipe")
            }
            None => {}
        }
        match folder {
            Some(folder) => Ok(Self::Named(NamedPipe::new(folder, name)?)),
            None => {
                let pipe = std::io::pipe().map_err(WorkloadError::system(
                    "cannot create a pipe for the command's output",
                ))?;
                Ok(Self::Pipe(pipe.0, pipe.1))
            }
        }
    }

    /// The end to which a child of this program writes; `None` if it inherits that of this program.
    fn writer(&self) -> std::io::Result<Option<Stdio>> {
        let writer = match self {
            Self::Inherited => return Ok(None),
            Self::Pipe(_, writer) => writer.try_clone().map(Stdio::from),
            Self::Terminal(terminal) => terminal.writer().map(Stdio::from),
            Self::Named(pipe) => File::options()
                .write(true)
                .open(&pipe.path)
                .map(Stdio::from),
        };
        writer.map(Some)
    }

    /// The path by which another process can open the stream for writing; `None` if it has no name.
    fn path(&self) -> Option<String> {
        match self {
            Self::Inherited | Self::Pipe(..) => None,
            Self::Terminal(terminal) => Some(terminal.path()),
            Self::Named(pipe) => Some(pipe.path.to_string_lossy().into_owned()),
        }
    }

    /// The end for reading, while the one for writing is closed; `None` if there is nothing to read.
    fn into_reader(self, windows: &mut Vec<TerminalWindow>) -> Option<Box<dyn Read + Send>> {
        Some(match self {
            Self::Inherited => return None,
            Self::Pipe(reader, _) => Box::new(reader),
            Self::Named(pipe) => Box::new(pipe.reader),
            Self::Terminal(terminal) => {
                let (reader, window) = terminal.into_reader();
                windows.push(window);
                Box::new(reader)
            }
        })
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
}
