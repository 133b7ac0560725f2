//! The exit codes of all commands.
//!
//! 0: success. 1: the work is done, but a limit was not met, a setting not restored or a file not written. 2: bad
//! input, or nothing could be done; 125 in its place if the user gave a command, as with `timeout` and `env`. If the
//! user's command failed: its exit code, 128 plus the signal that ended it or this program, or 126 or 127 if it could
//! not be started.

use anyhow::Result;
use sweetspot_session::hold::SetCapError;
use sweetspot_session::{SessionError, SweepError};
use sweetspot_workload::{CommandExit, WorkloadError};

use crate::documents::{WriteError, Written, is_closed_pipe};

/// The exit code if a limit was not met, a setting not restored or a file not written.
const NOT_MET: u8 = 1;
/// The exit code of bad input.
const BAD_INPUT: u8 = 2;
/// The exit code of bad input if the user gave a command to run.
const BAD_INPUT_WITH_COMMAND: u8 = 125;
/// The exit code of shells for a command that exists but cannot be executed.
const CANNOT_RUN: u8 = 126;
/// The exit code of shells for a command that does not exist.
const NOT_FOUND: u8 = 127;

/// The outcome of a `sweetspot` command that did its work; it determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How the user's command ended; `None` if no command ran.
    pub command: Option<CommandExit>,
    /// The signal that interrupted this program; `None` if none did.
    pub interrupted_by: Option<i32>,
    /// Whether the results are within the limits, caps and tolerances that the user gave.
    pub is_met: bool,
    /// Whether the previous settings of all devices were restored.
    pub is_restored: bool,
    /// Whether every requested document was written.
    pub written: Written,
}

impl Outcome {
    /// The outcome of successful work that did not run a command of the user.
    pub const DONE: Self = Self {
        command: None,
        interrupted_by: None,
        is_met: true,
        is_restored: true,
        written: Written::Everything,
    };

    /// The outcome of a command that writes no documents; `is_met` says whether its limits were met.
    pub fn met(is_met: bool) -> Self {
        Self {
            is_met,
            ..Self::DONE
        }
    }

    /// The outcome of work that a signal interrupted.
    pub fn interrupted_by(signal: i32) -> Self {
        Self {
            interrupted_by: Some(signal),
            ..Self::DONE
        }
    }

    /// Whether the exit code is 0.
    pub fn is_success(&self) -> bool {
        self.exit_code() == 0
    }

    /// The exit code of this outcome.
    fn exit_code(&self) -> u8 {
        match (self.command, self.interrupted_by) {
            (Some(CommandExit::Signal(signal)), _) => code_of_signal(signal),
            (Some(CommandExit::Code(code)), _) if code != 0 => to_u8(code),
            (_, Some(signal)) => code_of_signal(signal),
            _ if self.is_met && self.is_restored && self.written == Written::Everything => 0,
            _ => NOT_MET,
        }
    }
}

/// An error whose message says what to do next. It has the exit code of the original error.
#[derive(Debug)]
pub struct ErrorWithMessage {
    pub error: SessionError,
    pub message: String,
}

impl std::fmt::Display for ErrorWithMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ErrorWithMessage {}

/// The exit code of a command's outcome or error.
pub fn exit_code(result: &Result<Outcome>, has_command: bool) -> u8 {
    match result {
        Ok(outcome) => outcome.exit_code(),
        Err(error) => code_of_error(error).unwrap_or(code_of_bad_input(has_command)),
    }
}

/// The exit code of bad input.
pub fn code_of_bad_input(has_command: bool) -> u8 {
    match has_command {
        true => BAD_INPUT_WITH_COMMAND,
        false => BAD_INPUT,
    }
}

/// The exit code of an error, or `None` if it is that of bad input.
fn code_of_error(error: &anyhow::Error) -> Option<u8> {
    if is_closed_pipe(error) {
        return Some(0);
    }
    // The work is done; only its result could not be written.
    if error.is::<WriteError>() {
        return Some(NOT_MET);
    }
    if let Some(SetCapError::NoAnswer { .. }) = error.downcast_ref() {
        return Some(NOT_MET);
    }
    let original = error
        .downcast_ref()
        .map(|error: &ErrorWithMessage| &error.error);
    match original.or_else(|| error.downcast_ref())? {
        SessionError::Workload(WorkloadError::NotStarted { is_missing, .. }) => {
            Some(code_of_start_failure(*is_missing))
        }
        SessionError::Workload(WorkloadError::Interrupted(signal))
        | SessionError::Sweep(SweepError::Interrupted { signal, .. }) => {
            Some(code_of_signal(*signal))
        }
        SessionError::Sweep(SweepError::NotRestored) => Some(NOT_MET),
        _ => None,
    }
}

/// The exit code of a command that could not be started.
fn code_of_start_failure(is_missing: bool) -> u8 {
    match is_missing {
        true => NOT_FOUND,
        false => CANNOT_RUN,
    }
}

/// The lowest 8 bits of an exit code, as shells report it.
fn to_u8(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// The exit code of a command that this signal ended.
fn code_of_signal(signal: i32) -> u8 {
    to_u8(128 + signal)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn the_command_decides_first_then_signals_then_missed_goals() {
        let not_written = Outcome {
            written: Written::NotEverything,
            ..Outcome::DONE
        };
        let not_restored = Outcome {
            is_restored: false,
            ..Outcome::DONE
        };
        for failed in [not_written, not_restored, Outcome::met(false)] {
            assert_eq!(failed.exit_code(), 1);
            let with = |command| Outcome {
                command: Some(command),
                ..failed
            };
            assert_eq!(with(CommandExit::Code(0)).exit_code(), 1);
            assert_eq!(with(CommandExit::Code(7)).exit_code(), 7);
            assert_eq!(with(CommandExit::Signal(9)).exit_code(), 137);
            let interrupted = Outcome {
                interrupted_by: Some(2),
                ..with(CommandExit::Code(0))
            };
            assert_eq!(interrupted.exit_code(), 130);
        }
        assert!(Outcome::DONE.is_success());
    }

    #[test]
    fn errors_have_the_code_of_bad_input_unless_they_are_special() {
        let code = |error: anyhow::Error| code_of_error(&error);
        assert_eq!(code(anyhow::anyhow!("bad flags")), None);
        let nothing = SessionError::from(SweepError::NothingToRun);
        assert_eq!(code(nothing.into()), None);
        let not_restored = SessionError::from(SweepError::NotRestored);
        assert_eq!(code(not_restored.into()), Some(1));
        let interrupted = SessionError::from(WorkloadError::Interrupted(15));
        assert_eq!(code(interrupted.into()), Some(143));
        let not_started = |is_missing| {
            SessionError::from(WorkloadError::NotStarted {
                program: "x".to_owned(),
                is_missing,
                reason: "no such file".to_owned(),
            })
        };
        assert_eq!(code(not_started(true).into()), Some(127));
        let with_context = Err::<(), _>(not_started(true)).context("some context");
        assert_eq!(with_context.map_err(code), Err(Some(127)));
        assert_eq!(code(not_started(false).into()), Some(126));
    }
}
