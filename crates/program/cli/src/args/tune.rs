//! The flags of `tune`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use sweetspot_control::tune::{SettingsScope, TuneKnob};
use sweetspot_decide::search::StrategyName;
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_session::measure::ProgressSource;

use super::figures::PaperArgs;
use super::metrics::MetricsArgs;
use super::shared::{CriteriaArgs, SudoArgs, WorkArgs, parse_network, parse_positive_seconds};
use super::sweep::parse_share;

/// Find the best setting while a training runs, and keep it.
///
/// Waits until the command runs steadily, measures it at the GPU's default settings, tries a few settings for some
/// seconds each, and keeps the best one that makes the job at most 5 % slower (--limit); when the load changes, it
/// searches again. At the end it says what was saved in energy, money and time. The command's progress is recognised in
/// its output if it prints a progress bar or step counts in a usual form (--progress); otherwise it reports it over a
/// shared-memory link (one line of Python, see docs/reference/link.md). The previous settings are restored at the end,
/// whatever happens.
#[derive(Debug, Args)]
#[command(after_help = TUNE_EXAMPLES)]
pub struct TuneArgs {
    /// The GPUs that the job uses: all, or a list of indices or UUIDs [default: those in CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "all|0,1|UUID,...")]
    pub device: Option<String>,

    /// What to adjust: power-cap, core-clock (saves energy even if the job never reaches the power cap), auto (the one
    /// of these two that works for the load), both, cpu-power-cap (that of each processor package; the energy is then
    /// that of GPUs, processors and their memory).
    #[arg(long, value_name = "KNOB", default_value_t)]
    pub knob: TuneKnob,

    /// Whether the GPUs of the job get one setting or settings of their own: same (one setting for all), each (after one
    /// for all was chosen, each GPU is slowed down as far as the job stays as fast, so that unlike GPUs do not wait for
    /// each other; takes about 20 s for each GPU).
    #[arg(long, value_name = "same|each", default_value_t)]
    pub settings: SettingsScope,

    /// Search strategy: guided, golden, linear, exhaustive.
    #[arg(long, value_name = "NAME", default_value_t = StrategyName::Guided)]
    pub strategy: StrategyName,

    /// Highest cost of trying settings, as a share of the job's time or energy.
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = parse_share)]
    pub budget: Ratio,

    /// Search again for the best setting after this time: 30min.
    #[arg(long, value_name = "TIME", value_parser = parse_positive_seconds)]
    pub retune_every: Option<Seconds>,

    /// Ignore the setting that an earlier run of the same command chose.
    #[arg(long)]
    pub fresh: bool,

    /// Where progress is found in the command's output, as with `measure`. A pattern must match a running total or the
    /// current rate: an average since the start reacts too slowly to a new setting.
    #[arg(long, value_name = "NAME|REGEX", default_value = "auto")]
    pub progress: ProgressSource,

    #[command(flatten)]
    pub metrics: MetricsArgs,

    #[command(flatten)]
    pub criteria: CriteriaArgs,

    /// Simulate these GPUs in virtual time, in place of running a command: NAME, or NAME:N for several.
    #[arg(
        long,
        value_name = "GPU[:N]",
        conflicts_with = "device",
        help_heading = "Simulation"
    )]
    pub simulate: Option<String>,

    /// The workload: NETWORK, NETWORK@STUDY, an .onnx file, or a profile file of yours. Can be given several times: the networks run
    /// one after the other in one job, so that the load changes.
    #[arg(long, value_name = "NAME", value_parser = parse_network, help_heading = "Simulation")]
    pub network: Vec<String>,

    #[command(flatten)]
    pub work: WorkArgs,

    /// Seed of all random numbers.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        help_heading = "Simulation"
    )]
    pub seed: u64,

    /// Write the result as JSON; `-` writes it to standard output in place of the tables.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Write the tables as Markdown; `-` writes them to standard output.
    #[arg(long, value_name = "FILE")]
    pub export_md: Option<PathBuf>,

    /// Draw power over time, with the measurement windows marked, as an SVG file; `-` writes it to standard output.
    #[arg(long, value_name = "FILE")]
    pub export_svg: Option<PathBuf>,

    #[command(flatten)]
    pub paper: PaperArgs,

    #[command(flatten)]
    pub sudo: SudoArgs,

    /// Never change a device setting (also SWEETSPOT_READ_ONLY=1); `tune` then refuses to run.
    #[arg(long)]
    pub read_only: bool,

    /// The command to run.
    #[arg(last = true, value_name = "CMD")]
    pub cmd: Vec<OsString>,
}

/// The examples in the help text of `tune`.
const TUNE_EXAMPLES: &str = "\
Examples:
  sweetspot tune -- python train.py
  sweetspot tune --objective energy --limit 'time<=+10%' --price-per-kwh 0.30 -- python train.py
  sweetspot tune --limit none -- python train.py
  sweetspot tune --knob core-clock --progress 'images/sec: ([0-9.]+)' -- ./benchmark
  sweetspot tune --export-json tune.json --export-svg tune.svg -- python train.py
  sweetspot tune --device 0,1 -- torchrun --nproc-per-node 2 train.py
  sweetspot tune --simulate v100 --network resnet50
  sweetspot tune --simulate titan_x_pascal:2,titan_x_maxwell:2 --network resnet_im";
