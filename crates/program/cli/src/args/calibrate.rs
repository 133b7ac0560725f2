//! The flags of `calibrate`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use sweetspot_quantity::Seconds;
use sweetspot_session::calibrate::MeterScope;

use super::shared::{AsRootArg, parse_positive_seconds};

/// Compare a GPU's own power sensor with a meter.
///
/// Fits the gain and the offset of the sensor, with 95 % intervals, while your command runs: at best a program that loads
/// the GPU for a minute or more. Stores them under a name, for the GPU with this UUID alone; `measure` and `sweep` apply
/// them with --calibration NAME. Changes no device setting.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct CalibrateArgs {
    /// The power meter, by its name in ~/.config/sweetspot/meters.toml or by what it is, as with `measure`.
    #[arg(long, value_name = "SPEC|NAME")]
    pub meter: String,

    /// What the meter measures: machine (the whole machine, as at the wall socket) or device (the GPU or the host alone,
    /// as a probe on its supply wires).
    #[arg(long, value_name = "WHAT", default_value = "machine", value_parser = parse_scope)]
    pub measures: MeterScope,

    /// The GPU, by index or UUID [default: the one in CUDA_VISIBLE_DEVICES, or the only one].
    #[arg(long, value_name = "0|UUID", conflicts_with = "host")]
    pub device: Option<String>,

    /// Calibrate the energy counters of the processors and their memory together, in place of a GPU's sensor.
    #[arg(long)]
    pub host: bool,

    /// The name of the calibration [default: that of the meter].
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Replace a calibration of the same name.
    #[arg(long)]
    pub replace: bool,

    /// Without a command: how long to observe what runs already.
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = parse_positive_seconds, conflicts_with = "cmd")]
    pub time: Seconds,

    /// Write the result as JSON; - writes it to standard output.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    #[command(flatten)]
    pub root: AsRootArg,

    /// The command to run; the idle device is observed for 4 s before and after it.
    #[arg(last = true, value_name = "CMD")]
    pub cmd: Vec<OsString>,
}

/// Parses what a meter measures.
fn parse_scope(text: &str) -> Result<MeterScope, String> {
    text.parse()
}

/// The examples in the help text of `calibrate`.
const EXAMPLES: &str = "\
Examples:
  sweetspot calibrate --meter wall -- python train.py --steps 500
  sweetspot calibrate --meter probe --measures device --device 0 --name bench -- ./load
  sweetspot calibrate --meter wall --host --for 2min
  sweetspot measure --calibration bench -- python train.py";
