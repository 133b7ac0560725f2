//! A command of the user's: signals passed to it, its exit code passed on.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use anyhow::Result;
use rustix::process::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use sweetspot_guard::{Ended, not_ignored};
use sweetspot_session::{SessionError, pass_signal};

use crate::exit::Outcome;

/// Runs it to its end.
pub fn run(mut command: Command) -> Result<Outcome> {
    // A terminal sends its signals to the command as well; the others are passed on.
    let mut signals = Signals::new(not_ignored(&[SIGINT, SIGQUIT, SIGTERM, SIGHUP]))?;
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(problem) => {
            let program = command.get_program().to_string_lossy().into_owned();
            return Err(SessionError::NotStarted { program, problem }.into());
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
    Ok(Outcome {
        command: Some(how_it_ended(status?)),
        ..Outcome::DONE
    })
}

fn how_it_ended(status: ExitStatus) -> Ended {
    match status.code() {
        Some(code) => Ended::Code(code),
        None => Ended::Signal(status.signal().unwrap_or(0)),
    }
}
