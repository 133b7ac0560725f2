//! The exit code of every command, in one place.
//!
//! 0: done. 1: done, and something asked for was not met. 2: bad input, or nothing could be done; 125 in its place
//! where a command of the user's was given, as `timeout` and `env` do. Otherwise the code of the user's command where
//! it failed, 128 and the signal that ended it or this program, and 126 or 127 where it could not be started.

use anyhow::Result;
use sweetspot_session::hold::SetCapError;
use sweetspot_session::{SessionError, SweepError};
use sweetspot_workload::{CommandExit, WorkloadError};

use crate::documents::{WriteError, Written, is_closed_pipe};

const NOT_MET: u8 = 1;
const REFUSED: u8 = 2;
const REFUSED_WITH_COMMAND: u8 = 125;
/// As shells say of a command that is there and cannot be run.
const CANNOT_RUN: u8 = 126;
/// As shells say of a command that is not there.
const NOT_FOUND: u8 = 127;

/// What came of a command that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How the user's command ended, where one ran.
    pub command: Option<CommandExit>,
    /// The signal that ended this program's own work early.
    pub stopped_by: Option<i32>,
    /// Whether limits, caps and the like were met as asked.
    pub is_met: bool,
    /// Whether every device is set as before.
    pub is_restored: bool,
    /// Whether every document is in its place.
    pub written: Written,
}

impl Outcome {
    /// Everything went well.
    pub const DONE: Self = Self {
        command: None,
        stopped_by: None,
        is_met: true,
        is_restored: true,
        written: Written::Everything,
    };

    /// A command without documents, where only one thing can be missed.
    pub fn met(is_met: bool) -> Self {
        Self {
            is_met,
            ..Self::DONE
        }
    }

    /// A signal ended the work.
    pub fn stopped_by(signal: i32) -> Self {
        Self {
            stopped_by: Some(signal),
            ..Self::DONE
        }
    }

    /// Whether there is nothing to complain about.
    pub fn is_success(&self) -> bool {
        self.number() == 0
    }

    fn number(&self) -> u8 {
        match (self.command, self.stopped_by) {
            (Some(CommandExit::Signal(signal)), _) => by_signal(signal),
            (Some(CommandExit::Code(code)), _) if code != 0 => passed_on(code),
            (_, Some(signal)) => by_signal(signal),
            _ if self.is_met && self.is_restored && self.written == Written::Everything => 0,
            _ => NOT_MET,
        }
    }
}

/// An error in other words, with what the user can do next. It has the exit code of the error itself.
#[derive(Debug)]
pub struct Rephrased {
    pub error: SessionError,
    pub message: String,
}

impl std::fmt::Display for Rephrased {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Rephrased {}

/// The exit code of a command that came to an outcome, or to an error.
pub fn code(done: &Result<Outcome>, has_command: bool) -> u8 {
    match done {
        Ok(outcome) => outcome.number(),
        Err(error) => of_error(error).unwrap_or(refused(has_command)),
    }
}

/// The exit code of bad input.
pub fn refused(has_command: bool) -> u8 {
    match has_command {
        true => REFUSED_WITH_COMMAND,
        false => REFUSED,
    }
}

/// The exit code of an error that is not a refusal.
fn of_error(error: &anyhow::Error) -> Option<u8> {
    if is_closed_pipe(error) {
        return Some(0);
    }
    // The work is done: only its answer could not be written.
    if error.is::<WriteError>() {
        return Some(NOT_MET);
    }
    if let Some(SetCapError::NoAnswer { .. }) = error.downcast_ref() {
        return Some(NOT_MET);
    }
    let rephrased = error.downcast_ref().map(|one: &Rephrased| &one.error);
    match rephrased.or_else(|| error.downcast_ref())? {
        SessionError::Workload(WorkloadError::NotStarted { is_missing, .. }) => {
            Some(not_started(*is_missing))
        }
        SessionError::Workload(WorkloadError::Interrupted(signal))
        | SessionError::Sweep(SweepError::Interrupted { signal, .. }) => Some(by_signal(*signal)),
        SessionError::Sweep(SweepError::NotRestored) => Some(NOT_MET),
        _ => None,
    }
}

fn not_started(is_missing: bool) -> u8 {
    match is_missing {
        true => NOT_FOUND,
        false => CANNOT_RUN,
    }
}

fn passed_on(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}

fn by_signal(signal: i32) -> u8 {
    passed_on(128 + signal)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn the_command_comes_first_then_signals_then_what_was_not_met() {
        let lost = Outcome {
            written: Written::NotEverything,
            ..Outcome::DONE
        };
        let unrestored = Outcome {
            is_restored: false,
            ..Outcome::DONE
        };
        for failed in [lost, unrestored, Outcome::met(false)] {
            assert_eq!(failed.number(), 1);
            let with = |command| Outcome {
                command: Some(command),
                ..failed
            };
            assert_eq!(with(CommandExit::Code(0)).number(), 1);
            assert_eq!(with(CommandExit::Code(7)).number(), 7);
            assert_eq!(with(CommandExit::Signal(9)).number(), 137);
            let stopped = Outcome {
                stopped_by: Some(2),
                ..with(CommandExit::Code(0))
            };
            assert_eq!(stopped.number(), 130);
        }
        assert!(Outcome::DONE.is_success());
    }

    #[test]
    fn errors_are_refusals_unless_they_say_more() {
        let number = |error: anyhow::Error| of_error(&error);
        assert_eq!(number(anyhow::anyhow!("bad flags")), None);
        let nothing = SessionError::from(SweepError::NothingToRun);
        assert_eq!(number(nothing.into()), None);
        let not_restored = SessionError::from(SweepError::NotRestored);
        assert_eq!(number(not_restored.into()), Some(1));
        let interrupted = SessionError::from(WorkloadError::Interrupted(15));
        assert_eq!(number(interrupted.into()), Some(143));
        let not_started = |is_missing| {
            SessionError::from(WorkloadError::NotStarted {
                program: "x".to_owned(),
                is_missing,
                reason: "the system says so".to_owned(),
            })
        };
        assert_eq!(number(not_started(true).into()), Some(127));
        let with_context = Err::<(), _>(not_started(true)).context("more words");
        assert_eq!(with_context.map_err(number), Err(Some(127)));
        assert_eq!(number(not_started(false).into()), Some(126));
    }
}
