//! `sweetspot generate`: shell completions and man pages.

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};

use crate::args::{Cli, GenerateArgs, GenerateCommand};
use crate::documents::print_unchanged;
use crate::exit::Outcome;

/// Runs `sweetspot generate`.
pub fn run(args: &GenerateArgs) -> Result<Outcome> {
    // The commit would make the pages of two builds differ.
    let program = Cli::command().version(env!("CARGO_PKG_VERSION"));
    match &args.command {
        GenerateCommand::Completions { shell } => {
            let mut script = Vec::new();
            let mut program = without_hidden_commands(&program);
            clap_complete::generate(*shell, &mut program, "sweetspot", &mut script);
            print_unchanged(&String::from_utf8_lossy(&script))?;
        }
        GenerateCommand::Man { folder } => clap_mangen::generate_to(program, folder)
            .with_context(|| format!("cannot write man pages to {}", folder.display()))?,
    }
    Ok(Outcome::DONE)
}

/// The program with the commands that its help shows; `clap_complete` would complete the others too.
fn without_hidden_commands(program: &Command) -> Command {
    let shown = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    Command::new("sweetspot")
        .version(env!("CARGO_PKG_VERSION"))
        .args(program.get_arguments())
        .subcommands(shown)
}
