//! The flags of `devices`.

use std::path::PathBuf;

use clap::Args;

/// Show the GPUs with their power caps, clocks and sensors.
///
/// Shows the current power and power cap, the clocks, and each sensor with its measured update period.
#[derive(Debug, Args)]
pub struct DevicesArgs {
    /// The GPUs to show: all, or a list of indices or UUIDs [default: those in CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "all|0,1|UUID,...")]
    pub device: Option<String>,

    /// A power meter to show beside those of ~/.config/sweetspot/meters.toml, such as shelly:http://ADDRESS. Meters are
    /// observed for 6 s.
    #[arg(long, value_name = "SPEC|NAME")]
    pub meter: Vec<String>,

    /// Write the result as JSON; `-` writes it to standard output in place of the table.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
}
