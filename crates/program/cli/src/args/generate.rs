//! Flags of `generate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;

/// Write shell completions and man pages.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    #[command(subcommand)]
    pub command: GenerateCommand,
}

#[derive(Debug, Subcommand)]
pub enum GenerateCommand {
    /// Print a script that completes commands and flags in a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write a man page for the program and one for each command to a folder, which must exist.
    Man {
        /// The folder.
        folder: PathBuf,
    },
}
