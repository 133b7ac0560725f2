//! The `sweetspot` program: flags become typed requests, answers become text and exit codes.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod args;
mod ask;
mod child;
mod compare;
mod export;
mod fit;
mod hold;
mod live_line;
mod measure;
mod network;
mod progress;
mod replay;
mod report;
mod reproduce;
mod run;
mod see;
mod sim_workload;
mod simulate;
mod study;
mod sweep;
mod tune;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

use args::{Cli, Command};

/// Done, and something asked for was not met.
pub const NOT_MET: u8 = 1;
/// Bad input, or nothing could be done.
const REFUSED: u8 = 2;
/// The same where a command of the user's was given, as `timeout` and `env` do.
const REFUSED_BESIDE_COMMAND: u8 = 125;

fn main() -> ExitCode {
    let refused = if names_a_command() {
        REFUSED_BESIDE_COMMAND
    } else {
        REFUSED
    };
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            return answer(&error, refused);
        }
    };
    if !matches!(
        cli.command,
        Command::Guard(_) | Command::Restore | Command::SimWorkload(_)
    ) {
        run::warn_of_settings_left();
    }
    let done = match cli.command {
        Command::Sweep(args) => sweep::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Fit(args) => fit::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::SimWorkload(args) => sim_workload::run(&args),
        Command::Measure(args) => measure::run(*args),
        Command::Run(args) => run::run(*args),
        Command::Hold(args) => hold::run(*args),
        Command::Tune(args) => tune::run(*args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Study(args) => study::run(args),
        Command::Task(args) => study::task(&args),
        Command::Restore => run::restore(),
        Command::Network(args) => network::run(*args),
        Command::Devices(args) => see::devices(&args),
        Command::Doctor(args) => see::doctor(&args),
        Command::Guard(args) => run::guard(&args.socket),
    };
    match done {
        Ok(code) => code,
        Err(error) if export::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("sweetspot: {error:#}"));
            ExitCode::from(refused)
        }
    }
}

/// Help and version are answers; everything else that the flags may lead to is one line.
fn answer(error: &clap::Error, refused: u8) -> ExitCode {
    if !error.use_stderr() || error.kind() == DisplayHelpOnMissingArgumentOrSubcommand {
        // A closed pipe is nobody's fault.
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { refused } else { 0 });
    }
    let text = error.to_string();
    let lines = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    say(&format!("sweetspot: {line} (--help shows the flags)"));
    ExitCode::from(refused)
}

/// To standard error, which may be closed: the exit code tells it all the same.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Whether something follows a `--`.
fn names_a_command() -> bool {
    std::env::args_os().skip_while(|arg| arg != "--").count() > 1
}
