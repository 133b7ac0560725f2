//! Exit codes of a command of the user's.

use std::process::ExitCode;

/// As shells say of a command that is not there, and of one that cannot be run.
pub fn not_run(missing: bool) -> ExitCode {
    ExitCode::from(if missing { 127 } else { 126 })
}

pub fn passed_on(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

pub fn by_signal(signal: i32) -> ExitCode {
    passed_on(128 + signal)
}
