//! The flags of `doctor`.

use std::path::PathBuf;

use clap::Args;

/// Check what works on this machine, and how to fix the rest.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Write the result as JSON; `-` writes it to standard output in place of the table.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
}
