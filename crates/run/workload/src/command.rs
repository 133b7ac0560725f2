//! The specification of a command to run.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::{MetricsSource, ProgressSource};

/// A command of the user, and how it is started.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Variables to add to the command's environment.
    pub environment: Vec<(String, OsString)>,
    /// Where the command's standard output is shown.
    pub output: OutputTarget,
    /// Whether the end of the command's output is stored.
    pub keep_output: bool,
    /// Whether the command's standard input is empty.
    pub no_input: bool,
    /// The command's working directory; the current one if `None`.
    pub folder: Option<PathBuf>,
    /// Where progress is found in the command's output.
    pub progress: ProgressSource,
    /// The metrics page of the server that the command is, or that it uses; progress is then read there.
    pub metrics: Option<MetricsSource>,
    /// The number of a process that runs already and is observed in place of a command.
    pub attach: Option<u32>,
    /// Whether this program shows a status line while the command runs. Where both are on a terminal, the command's output
    /// passes through this program, so that they do not mix.
    pub has_status_line: bool,
}

/// Where a command's standard output is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputTarget {
    /// The output is shown on this program's standard output.
    #[default]
    StandardOutput,
    /// The output is shown on this program's standard error, because standard output is reserved for a result document.
    StandardError,
    /// The output is not shown; the command's standard error is hidden too.
    Hidden,
}

impl CommandSpec {
    /// A command that inherits this program's input, output and working directory.
    pub fn new(words: Vec<OsString>) -> Self {
        Self {
            words,
            environment: Vec::new(),
            output: OutputTarget::StandardOutput,
            keep_output: false,
            no_input: false,
            folder: None,
            progress: ProgressSource::Off,
            metrics: None,
            attach: None,
            has_status_line: false,
        }
    }

    /// Whether this program has to read the command's output, in order to show, store or search it.
    pub(crate) fn reads_output(&self) -> bool {
        self.progress.is_on() || self.keep_output || self.output == OutputTarget::Hidden
    }

    /// The name of the program, as text.
    pub(crate) fn program(&self) -> String {
        let first = self.words.first();
        first.map_or(String::new(), |word| word.to_string_lossy().into_owned())
    }
}
