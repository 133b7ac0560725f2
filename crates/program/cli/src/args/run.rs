//! The flags of `run`, and of the guard that it starts.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use sweetspot_quantity::{Megahertz, Watts, parse_bare};
use sweetspot_session::measure::ProgressSource;

use super::shared::{CriteriaArgs, PreferArgs, SudoArgs, TextExportArgs};

/// Run a command at a GPU or processor setting, then restore it.
///
/// The setting applies while the command runs. A separate process restores the previous settings afterwards, even
/// after an error, a signal or the death of this program.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// The GPUs to use: all, or a list of indices or UUIDs [default: those in CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "all|0,1|UUID,...")]
    pub device: Option<String>,

    /// Power cap of each GPU: 180W.
    #[arg(long, value_name = "WATTS", value_parser = parse_bare::<Watts>)]
    pub power_cap: Option<Watts>,

    /// Clock to lock the cores to: 1200MHz.
    #[arg(long, value_name = "MHZ", value_parser = parse_bare::<Megahertz>)]
    pub core_clock: Option<Megahertz>,

    /// Clock to lock the memory to.
    #[arg(long, value_name = "MHZ", value_parser = parse_bare::<Megahertz>)]
    pub memory_clock: Option<Megahertz>,

    /// Power cap of each processor package: 150W.
    #[arg(long, value_name = "WATTS", value_parser = parse_bare::<Watts>)]
    pub cpu_power_cap: Option<Watts>,

    /// Use the best setting of a study for --objective within every --limit. {batch} and other parameters in the
    /// command are replaced by their values. The GPUs must be of the model that the study was measured on. The run is
    /// measured.
    #[arg(long, value_name = "STUDY", conflicts_with_all = ["power_cap", "core_clock", "memory_clock", "cpu_power_cap"])]
    pub from: Option<PathBuf>,

    /// With --from: use the study even if it was measured on another GPU model, or on simulated GPUs.
    #[arg(long, requires = "from", conflicts_with_all = ["power_cap", "core_clock", "memory_clock", "cpu_power_cap"])]
    pub force_from: bool,

    #[command(flatten)]
    pub criteria: CriteriaArgs,

    #[command(flatten)]
    pub prefer: PreferArgs,

    /// Measure the run like `measure`.
    #[arg(long)]
    pub measure: bool,

    /// Where progress is found in the command's output, as with `measure` [default: auto].
    #[arg(long, value_name = "NAME|REGEX")]
    pub progress: Option<ProgressSource>,

    #[command(flatten)]
    pub export: TextExportArgs,

    #[command(flatten)]
    pub sudo: SudoArgs,

    /// Never change a device setting (also SWEETSPOT_READ_ONLY=1).
    #[arg(long)]
    pub read_only: bool,

    /// The command to run.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub cmd: Vec<OsString>,
}

/// The examples in the help text of `run`.
const RUN_EXAMPLES: &str = "\
Examples:
  sweetspot run --power-cap 180W -- python train.py
  sweetspot run --device 0 --core-clock 1200MHz -- python train.py
  sweetspot run --cpu-power-cap 150W -- python train.py
  sweetspot run --from studies/train --objective edp --limit 'time<=+10%' -- python train.py --epochs 90";

/// Guard the devices during a run; `run` and other commands start it themselves.
#[derive(Debug, Args)]
pub struct GuardArgs {
    /// Ask the service at this socket to change settings.
    #[arg(long, value_name = "SOCKET", conflicts_with = "root_socket")]
    pub service: Option<PathBuf>,

    /// Ask a process of root, which connects to this socket, to change settings.
    #[arg(long, value_name = "SOCKET")]
    pub root_socket: Option<PathBuf>,
}
