//! The `sweetspot` program: flags become typed requests, answers become text and exit codes.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod args;
mod ask;
mod compare;
mod documents;
mod exit;
mod fit;
mod hints;
mod hold;
mod live_line;
mod log;
mod measure;
mod network;
mod observer;
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

use anyhow::Result;
use clap::Parser;
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

use args::{Cli, Command};
use exit::Outcome;

fn main() -> ExitCode {
    let has_command = names_a_command();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return answer(&error, exit::refused(has_command)),
    };
    let done = match log::start(cli.log) {
        Ok(()) => run_command(cli),
        Err(error) => Err(error),
    };
    if let Err(error) = &done
        && !documents::is_closed_pipe(error)
    {
        say(&format!("sweetspot: {}", hints::message(error)));
    }
    let code = exit::code(&done, has_command);
    tracing::info!(code, "finished");
    ExitCode::from(code)
}

fn run_command(cli: Cli) -> Result<Outcome> {
    if !matches!(
        cli.command,
        Command::Guard(_) | Command::Restore | Command::SimWorkload(_)
    ) {
        run::warn_of_settings_left();
    }
    match cli.command {
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

/// Writes a line to standard error, which may be closed or full: the exit code tells it all the same.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Whether something follows a `--`.
fn names_a_command() -> bool {
    std::env::args_os().skip_while(|arg| arg != "--").count() > 1
}
