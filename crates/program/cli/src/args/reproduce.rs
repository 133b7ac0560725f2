//! The flags of `reproduce`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use sweetspot_study::EnergyOf;

use super::figures::FigureArgs;
use super::meters::MeterArgs;
use super::shared::{ProfilesArgs, SudoArgs, TextExportArgs};

/// Reproduce a published study and compare it with the paper.
///
/// Runs the study on simulated GPUs. Shows every value of the paper's tables, how far the simulated value is from it,
/// and whether the paper's conclusions hold. The exit code is 1 if a value is outside its tolerance or a conclusion does
/// not hold. With --on-this-gpu it runs the paper's plan on your own GPUs with your program, and shows published, simulated
/// and measured values side by side.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct ReproduceArgs {
    /// The study: power-capping-2022, dvfs-2019, multi-gpu-2018, batch-sizer-2021 or node-power-capping-2023.
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Show only how many values are within their tolerance, and which conclusions hold.
    #[arg(long, conflicts_with = "on_this_gpu")]
    pub summary: bool,

    /// Seed of the random numbers of the runs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    pub profiles: ProfilesArgs,

    #[command(flatten)]
    pub export: TextExportArgs,

    #[command(flatten)]
    pub figures: FigureArgs,

    #[command(flatten, next_help_heading = "On this GPU")]
    pub own: OnThisGpuArgs,

    /// With --on-this-gpu: your command. With batch sizes, {batch} in it becomes the batch size.
    #[arg(last = true, value_name = "CMD", requires = "on_this_gpu")]
    pub cmd: Vec<OsString>,
}

/// Flags of a reproduction on the user's own GPUs.
#[derive(Debug, Args)]
pub struct OnThisGpuArgs {
    /// Run the paper's plan (caps or clocks or batch sizes, numbers of GPUs, repeats) on your own GPUs with your program.
    /// Where your GPU has another range, caps are at the same share of it. Not for batch-sizer-2021.
    #[arg(long)]
    pub on_this_gpu: bool,

    /// The GPUs to use: all, or a list of indices or UUIDs [default: those in CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "all|0,1|UUID,...", requires = "on_this_gpu")]
    pub device: Option<String>,

    /// The network of the paper to compare with [default: resnet50, or the paper's own].
    #[arg(long, value_name = "NETWORK", requires = "on_this_gpu")]
    pub network: Option<String>,

    /// Number of runs of each configuration [default: the paper's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), requires = "on_this_gpu")]
    pub repeat: Option<u32>,

    /// Use at most this number of caps, clocks or batch sizes, evenly chosen [default: all of the paper's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000), requires = "on_this_gpu")]
    pub points: Option<u32>,

    /// Whose energy is compared: job-gpus, all-gpus or node [default: as in the paper].
    #[arg(long, value_name = "WHOSE", requires = "on_this_gpu")]
    pub energy_of: Option<EnergyOf>,

    #[command(flatten, next_help_heading = "On this GPU")]
    pub meters: MeterArgs,

    /// Where progress is found in the command's output, as with `sweep`.
    #[arg(long, value_name = "NAME|REGEX", requires = "on_this_gpu")]
    pub progress: Option<String>,

    /// Store the study in this new folder [default: studies/NAME].
    #[arg(long, value_name = "FOLDER", requires = "on_this_gpu")]
    pub study: Option<PathBuf>,

    /// Show the planned runs, and run nothing.
    #[arg(long, requires = "on_this_gpu")]
    pub dry_run: bool,

    /// Start a study that takes more than an hour without asking.
    #[arg(long, short, requires = "on_this_gpu")]
    pub yes: bool,

    /// Write the study as an HTML page, with the comparison.
    #[arg(long, value_name = "FILE", requires = "on_this_gpu")]
    pub export_html: Option<PathBuf>,

    #[command(flatten)]
    pub sudo: SudoArgs,

    /// Never change a device setting (also SWEETSPOT_READ_ONLY=1); only multi-gpu-2018 works then.
    #[arg(long, requires = "on_this_gpu")]
    pub read_only: bool,
}

/// The examples in the help text of `reproduce`.
const EXAMPLES: &str = "\
Examples:
  sweetspot reproduce power-capping-2022
  sweetspot reproduce dvfs-2019 --summary
  sweetspot reproduce multi-gpu-2018 --export-csv rows.csv
  sweetspot reproduce power-capping-2022 --export-figures figures --figure-format svg,pdf
  sweetspot reproduce node-power-capping-2023 --profiles my-profiles
  sweetspot reproduce power-capping-2022 --on-this-gpu --points 7 --repeat 2 -- python train.py";
