//! The `sweetspot` program: turns flags into typed requests, and results into text, documents and exit codes.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::print_stderr
    )
)]

mod args;
mod budget;
mod calibrate;
mod compare;
mod config;
mod confirm;
mod counter;
mod devices;
mod doctor;
mod documents;
mod exit;
mod fit;
#[cfg(feature = "generate")]
mod generate;
mod guard_launcher;
mod hints;
mod hold;
mod hold_latency;
mod job_reporter;
mod live_line;
mod log;
mod measure;
mod messages;
mod network;
mod next_step;
mod observer;
mod progress;
mod replay;
mod report;
mod reproduce;
mod reproduce_on_gpu;
mod root_guard;
mod run;
mod run_status;
mod serve;
mod sim_workload;
mod simulate;
mod slurm;
mod study;
mod sweep;
mod terminal;
mod top;
mod tune;
mod typed;
mod without_gpu;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind::{DisplayHelpOnMissingArgumentOrSubcommand, UnknownArgument};
use clap::error::{ContextKind, ContextValue};

use args::{AsRootArg, Cli, Command};
use exit::Outcome;
use sweetspot_service::privileges::{become_user, set_environment, user_behind_sudo};
use tracing::level_filters::LevelFilter;

fn main() -> ExitCode {
    let has_command = has_user_command();
    let cli = match parse_arguments() {
        Ok(cli) => cli,
        Err(error) => return report_parse_error(&error, exit::code_of_bad_input(has_command)),
    };
    let result = become_calling_user(&cli)
        .and_then(|()| start_log(&cli))
        .and_then(|()| run_command(cli));
    if let Err(error) = &result
        && !documents::is_closed_pipe(error)
    {
        messages::print_error(&hints::message_with_hint(error));
    }
    let code = exit::exit_code(&result, has_command);
    tracing::info!(code, "finished");
    ExitCode::from(code)
}

/// Parses the arguments, and chooses the colours of everything that is printed from then on.
fn parse_arguments() -> Result<Cli, clap::Error> {
    let color = terminal::find_choice(std::env::args_os().skip(1));
    terminal::set_choice(color);
    args::parse(|program| {
        program
            .color(terminal::colours_of_help(color))
            .styles(terminal::HELP_STYLES)
    })
}

/// Under sudo, starts the process that changes settings as root, and then becomes the user who called sudo, before any
/// file is opened.
fn become_calling_user(cli: &Cli) -> Result<()> {
    let (changes_settings, as_root) = match &cli.command {
        Command::Serve(_)
        | Command::Policy(_)
        | Command::Slurm(_)
        | Command::Restore
        | Command::Guard(_)
        | Command::Monitor(_)
        | Command::RootGuard(_) => return Ok(()),
        // An administrator writes man pages to a folder of root's.
        #[cfg(feature = "generate")]
        Command::Generate(_) => return Ok(()),
        Command::Run(args) => (true, args.sudo.root),
        Command::Sweep(args) => (true, args.sudo.root),
        Command::Tune(args) => (true, args.sudo.root),
        Command::Hold(args) => (true, args.sudo.root),
        Command::Budget(args) => (true, args.sudo.root),
        Command::Task(_) => (true, AsRootArg::default()),
        Command::Reproduce(args) => (args.own.on_this_gpu, args.own.sudo.root),
        Command::Measure(args) => (false, args.root),
        Command::Calibrate(args) => (false, args.root),
        _ => (false, AsRootArg::default()),
    };
    if as_root.as_root {
        return Ok(());
    }
    let Some(user) = user_behind_sudo()? else {
        return Ok(());
    };
    if changes_settings {
        guard_launcher::start_keeper()?;
    }
    become_user(&user)?;
    set_environment(&user)?;
    Ok(())
}

/// Starts the log. A process that runs as root for others does not look at the environment.
fn start_log(cli: &Cli) -> Result<()> {
    let is_privileged = matches!(
        cli.command,
        Command::Serve(_) | Command::Monitor(_) | Command::RootGuard(_)
    );
    let level = cli.log.or(is_privileged.then_some(LevelFilter::WARN));
    log::start(level)
}

/// Runs the command that the flags name.
fn run_command(cli: Cli) -> Result<Outcome> {
    if !matches!(
        cli.command,
        Command::Guard(_)
            | Command::RootGuard(_)
            | Command::Serve(_)
            | Command::Monitor(_)
            | Command::Counter(_)
            | Command::Top(_)
            | Command::Policy(_)
            | Command::Slurm(_)
            | Command::Restore
            | Command::SimWorkload(_)
    ) {
        run::warn_about_changed_settings();
    }
    match cli.command {
        Command::Sweep(args) => sweep::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Fit(args) => fit::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::SimWorkload(args) => sim_workload::run(&args),
        Command::Measure(args) => measure::run(*args),
        Command::Calibrate(args) => calibrate::run(*args),
        Command::Run(args) => run::run(*args),
        Command::Hold(args) => hold::run(*args),
        Command::Budget(args) => budget::run(*args),
        Command::Tune(args) => tune::run(*args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Study(args) => study::run(args),
        Command::Task(args) => study::run_task(&args),
        Command::Restore => run::restore(),
        Command::Network(args) => network::run(*args),
        Command::Devices(args) => devices::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Policy(args) => serve::run_policy(&args),
        Command::Slurm(args) => slurm::run(&args),
        Command::Counter(args) => counter::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Monitor(args) => counter::run_monitor(args),
        Command::Guard(args) => run::serve_guard(args),
        Command::RootGuard(args) => root_guard::run(&args),
        #[cfg(feature = "generate")]
        Command::Generate(args) => generate::run(&args),
    }
}

/// Prints what clap reports about the flags: help and version in full, an error in one line.
fn report_parse_error(error: &clap::Error, bad_input: u8) -> ExitCode {
    if !error.use_stderr() || error.kind() == DisplayHelpOnMissingArgumentOrSubcommand {
        // A closed pipe is not an error.
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { bad_input } else { 0 });
    }
    if let Some(line) = missing_separator(error) {
        messages::print_error(&line);
        return ExitCode::from(bad_input);
    }
    let text = error.to_string();
    let lines = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    messages::print_error(&format!("{line} (--help shows the flags)"));
    ExitCode::from(bad_input)
}

/// The message for a command of the user that does not follow `--`; `None` if that is not the problem.
fn missing_separator(error: &clap::Error) -> Option<String> {
    if error.kind() != UnknownArgument || has_user_command() {
        return None;
    }
    let Some(ContextValue::String(unexpected)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let takes_command = [
        "sweep",
        "run",
        "tune",
        "hold",
        "measure",
        "simulate",
        "calibrate",
        "reproduce",
    ];
    let position = words.iter().skip(1).position(|word| word == unexpected)? + 1;
    if unexpected.starts_with('-') || !takes_command.contains(&words.first()?.as_str()) {
        return None;
    }
    let (flags, command) = words.split_at(position);
    Some(format!(
        "write your command after `--`: sweetspot {} -- {}",
        flags.join(" "),
        command.join(" ")
    ))
}

/// Writes a line to standard error. Failures are ignored: standard error may be closed or full, and the exit code
/// reports the error too.
pub fn print_error_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", messages::printable(line));
}

/// Whether the user gave a command after `--`.
fn has_user_command() -> bool {
    std::env::args_os().skip_while(|arg| arg != "--").count() > 1
}
