//! The `sweetspot` program: flags become typed requests, answers become text and exit codes.

mod args;
mod export;
mod simulate;
mod sweep;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

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
            // Help and version are answers, not errors. A closed pipe is nobody's fault.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { refused } else { 0 });
        }
    };
    let done = match cli.command {
        Command::Sweep(args) => sweep::run(args),
        Command::Simulate(args) => simulate::run(&args),
    };
    match done {
        Ok(code) => code,
        Err(error) if export::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sweetspot: {error:#}");
            ExitCode::from(refused)
        }
    }
}

/// Whether something follows a `--`.
fn names_a_command() -> bool {
    std::env::args_os().skip_while(|arg| arg != "--").count() > 1
}
