//! Of `devices` and `doctor`.

use std::path::PathBuf;

use clap::Args;

/// Show the GPUs: power and cap now, clocks, and each sensor with its measured update period.
#[derive(Debug, Args)]
pub struct DevicesArgs {
    /// The GPUs: all, indices, or UUIDs [default: those in CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "all|0,1|UUID,...")]
    pub device: Option<String>,

    /// Write the same as JSON; `-` is standard output, which then carries nothing else.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
}

/// Check what works here, and say how to mend what does not.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Write the same as JSON; `-` is standard output, which then carries nothing else.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
}
