//! A command of the user's: signals passed to it, its exit code passed on.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::Result;
use rustix::process::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use sweetspot_guard::not_ignored;
use sweetspot_session::pass_signal;

/// As shells say of a command that is not there, and of one that cannot be run.
pub fn not_run(missing: bool) -> ExitCode {
    ExitCode::from(if missing { 127 } else { 126 })
}

pub fn run(mut command: Command) -> Result<ExitCode> {
    // A terminal sends its signals to the command as well; the others are passed on.
    let mut signals = Signals::new(not_ignored(&[SIGINT, SIGQUIT, SIGTERM, SIGHUP]))?;
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = command.get_program().to_string_lossy();
            eprintln!("sweetspot: cannot run {program}: {error}");
            let missing = error.kind() == io::ErrorKind::NotFound;
            return Ok(not_run(missing));
        }
    };
    let pid = Pid::from_child(&child);
    let handle = signals.handle();
    let passer = std::thread::spawn(move || {
        for signal in signals.forever() {
            pass_signal(pid, signal);
        }
    });
    let status = child.wait();
    handle.close();
    let _ = passer.join();
    Ok(code(status?))
}

/// The command's own code, or 128 and the signal that ended it.
fn code(status: ExitStatus) -> ExitCode {
    match status.code() {
        Some(code) => passed_on(code),
        None => by_signal(status.signal().unwrap_or(0)),
    }
}

pub fn passed_on(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

pub fn by_signal(signal: i32) -> ExitCode {
    passed_on(128 + signal)
}
