//! `sweetspot run`, `restore`, and the guard behind them.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use sweetspot_device::Settings;
use sweetspot_guard::{Ended, GuardError};
use sweetspot_session::{
    Ran, RunRequest, SessionError, left_changed, restore_all, run as run_session, serve_as_guard,
};

use crate::NOT_MET;
use crate::args::RunArgs;
use crate::child::{by_signal, not_run, passed_on};
use crate::export::print;

pub fn run(args: RunArgs) -> Result<ExitCode> {
    let request = RunRequest {
        device: args.device,
        settings: Settings {
            power_cap: args.power_cap,
            core_clock: args.core_clock,
            memory_clock: args.memory_clock,
        },
        read_only: args.read_only || read_only(),
        command: args.cmd,
    };
    let program = std::env::current_exe().context("this program cannot find itself")?;
    let guard = || {
        let mut guard = Command::new(&program);
        guard.arg("guard");
        guard
    };
    let ran = run_session(&request, guard, &mut |note| eprintln!("sweetspot: {note}"));
    match ran {
        Ok(Ran {
            ended: Ended::Code(0),
            restored: false,
        }) => Ok(ExitCode::from(NOT_MET)),
        Ok(Ran {
            ended: Ended::Code(code),
            ..
        }) => Ok(passed_on(code)),
        Ok(Ran {
            ended: Ended::Signal(signal),
            ..
        }) => Ok(by_signal(signal)),
        Err(SessionError::Guard(error @ GuardError::NotStarted { missing, .. })) => {
            eprintln!("sweetspot: {error}");
            Ok(not_run(missing))
        }
        Err(error) => Err(error.into()),
    }
}

/// Set to anything but nothing or 0.
fn read_only() -> bool {
    std::env::var_os("SWEETSPOT_READ_ONLY").is_some_and(|value| !value.is_empty() && value != "0")
}

pub fn guard(socket: &Path) -> Result<ExitCode> {
    serve_as_guard(socket)?;
    Ok(ExitCode::SUCCESS)
}

pub fn restore() -> Result<ExitCode> {
    if read_only() && !left_changed().is_empty() {
        return Err(SessionError::ReadOnly.into());
    }
    let lines = restore_all()?;
    if lines.is_empty() {
        print("nothing was left changed\n")?;
    }
    let mut met = true;
    for line in lines {
        match line {
            Ok(line) => print(&format!("{line}\n"))?,
            Err(problem) => {
                eprintln!("sweetspot: {problem}");
                met = false;
            }
        }
    }
    Ok(ExitCode::from(if met { 0 } else { NOT_MET }))
}

/// Every command says so if something was left changed.
pub fn warn_of_settings_left() {
    for left in left_changed() {
        match left {
            Ok(left) if left.this_boot => eprintln!(
                "sweetspot: {} was left changed by {}: `sweetspot restore` puts it back",
                left.name, left.owner
            ),
            Ok(left) => eprintln!(
                "sweetspot: {} was left changed in an earlier boot of this machine, which undid it: `sweetspot restore` forgets it",
                left.name
            ),
            Err(problem) => eprintln!("sweetspot: {problem}"),
        }
    }
}
