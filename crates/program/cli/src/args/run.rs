//! Of `run`, and of the guard behind it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use sweetspot_quantity::{Megahertz, Watts, parse_bare};
use sweetspot_session::measure::ProgressPattern;

use super::shared::{QuestionArgs, TextExportArgs};

/// Run a command with the GPUs at a setting, then put everything back as it was.
///
/// The setting holds while the command runs. Whatever happens then, an error, a signal, the death of this
/// program, a process of its own puts back what was set before.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// The GPUs: all, indices, or UUIDs [default: those in CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "all|0,1|UUID,...")]
    pub device: Option<String>,

    /// The most power each may draw: 180W.
    #[arg(long, value_name = "WATTS", value_parser = parse_bare::<Watts>)]
    pub power_cap: Option<Watts>,

    /// The clock the cores are locked to: 1200MHz.
    #[arg(long, value_name = "MHZ", value_parser = parse_bare::<Megahertz>)]
    pub core_clock: Option<Megahertz>,

    /// The clock the memory is locked to.
    #[arg(long, value_name = "MHZ", value_parser = parse_bare::<Megahertz>)]
    pub memory_clock: Option<Megahertz>,

    /// The setting that a study chose, for --objective and within each --limit; {batch} and the like in the
    /// command become its values. The run is measured.
    #[arg(long, value_name = "STUDY", conflicts_with_all = ["power_cap", "core_clock", "memory_clock"])]
    pub from: Option<PathBuf>,

    #[command(flatten)]
    pub question: QuestionArgs,

    /// Measure the run, as `measure` does.
    #[arg(long)]
    pub measure: bool,

    /// A pattern that finds progress in the command's output, as for `measure`.
    #[arg(long, value_name = "REGEX")]
    pub progress: Option<ProgressPattern>,

    #[command(flatten)]
    pub export: TextExportArgs,

    /// Change no device setting (also SWEETSPOT_READ_ONLY=1).
    #[arg(long)]
    pub read_only: bool,

    /// The command.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub cmd: Vec<OsString>,
}

const RUN_EXAMPLES: &str = "\
Examples:
  sweetspot run --power-cap 180W -- python train.py
  sweetspot run --device 0 --core-clock 1200MHz -- python train.py
  sweetspot run --from studies/train --objective edp --limit 'time<=+10%' -- python train.py --epochs 90";

/// The guard of a run: started by it, not by people.
#[derive(Debug, Args)]
pub struct GuardArgs {
    /// The socket on which the client waits.
    pub socket: PathBuf,
}
