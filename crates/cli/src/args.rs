//! The flags, their help, and nothing else.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use sweetspot_decide::Objective;

/// Makes deep learning on GPUs cost less energy.
///
/// A GPU rarely needs all the power it may draw: a lower power cap often saves a quarter of the energy
/// for a tenth more time. Sweetspot finds the setting where that trade suits you.
#[derive(Debug, Parser)]
#[command(name = "sweetspot", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Sweep(Box<SweepArgs>),
    Simulate(SimulateArgs),
}

/// Try every power cap, several times each, and say which is best.
#[derive(Debug, Args)]
#[command(after_help = SWEEP_EXAMPLES)]
pub struct SweepArgs {
    /// The simulated GPU: a name (see `simulate --list`) or your own profile file.
    #[arg(long, value_name = "GPU")]
    pub simulate: Option<String>,

    /// The workload: NETWORK, NETWORK@STUDY, or your own profile file.
    #[arg(long, value_name = "NAME")]
    pub network: Option<String>,

    /// The network is trained.
    #[arg(long, conflicts_with = "infer")]
    pub train: bool,

    /// The network is only used.
    #[arg(long)]
    pub infer: bool,

    /// Items in a batch [default: as in the study].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_ITEMS))]
    pub batch: Option<u64>,

    /// Items in a run [default: as in the study].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_ITEMS))]
    pub items: Option<u64>,

    /// Power caps to try: 150..300:5, 150,180,210, or all (steps of 5 W and both ends).
    #[arg(long, value_name = "AXIS", default_value = "all")]
    pub power_cap: String,

    /// Runs of each configuration.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,

    /// Seed of everything random; the same seed gives the same study, to the bit.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// What the recommendation is for: energy, time, power, edp, ed2p, eds:K, gain-minus-loss,
    /// energy-per-item, items-per-joule, throughput.
    #[arg(long, value_name = "OBJ", default_value = "edp")]
    pub objective: Objective,

    /// Runs computed at a time; changes no result [default: one for each core].
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,

    #[command(flatten)]
    pub export: ExportArgs,

    /// Your own command, run on real GPUs.
    #[arg(last = true, value_name = "CMD")]
    pub cmd: Vec<OsString>,
}

/// A billion items take years on any GPU.
const MOST_ITEMS: u64 = 1_000_000_000;

const SWEEP_EXAMPLES: &str = "\
Examples:
  sweetspot sweep --simulate v100 --network resnet50
  sweetspot sweep --simulate quadro_rtx_6000 --network vgg19 --power-cap 120..200:10
  sweetspot sweep --simulate v100 --network resnet50 --export-json study.json --export-csv -";

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Write the study as JSON; `-` is standard output, which then carries nothing else.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Write a line for each configuration as CSV; `-` as above.
    #[arg(long, value_name = "FILE")]
    pub export_csv: Option<PathBuf>,

    /// Write the table as Markdown; `-` as above.
    #[arg(long, value_name = "FILE")]
    pub export_md: Option<PathBuf>,
}

/// Look at the simulated GPUs and workloads.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, group(clap::ArgGroup::new("what").required(true).args(["list", "errors"])))]
pub struct SimulateArgs {
    /// List every simulated GPU and workload.
    #[arg(long)]
    pub list: bool,

    /// Compare the simulator with every published figure it was fitted to; exit code 1 if one is off
    /// by more than 2 %.
    #[arg(long)]
    pub errors: bool,

    /// Print tables as Markdown.
    #[arg(long)]
    pub markdown: bool,
}
