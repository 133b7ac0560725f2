//! Of `tune`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use sweetspot_control::tune::TuneKnob;
use sweetspot_decide::search::StrategyName;
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_session::measure::ProgressPattern;

use super::shared::{QuestionArgs, WorkArgs, positive_seconds};
use super::sweep::share;

/// Find the best setting of a training while it runs, and hold it.
///
/// Waits until the command works steadily, measures it at the GPU's defaults, tries a few settings for some
/// seconds each, and holds the best one; when the load changes, it looks again. The command must tell of its
/// progress: over the link (docs/link.md: one line of Python), or in its output (--progress). Everything is put
/// back at the end, whatever happens.
#[derive(Debug, Args)]
#[command(after_help = TUNE_EXAMPLES)]
pub struct TuneArgs {
    /// The GPUs: all, indices, or UUIDs; all get the same setting [default: those in CUDA_VISIBLE_DEVICES,
    /// else all].
    #[arg(long, value_name = "all|0,1|UUID,...")]
    pub device: Option<String>,

    /// What is set: power-cap, core-clock (saves also where the cap does not bind), both.
    #[arg(long, value_name = "KNOB", default_value_t)]
    pub knob: TuneKnob,

    /// How settings are chosen for a try: guided, golden, linear, exhaustive.
    #[arg(long, value_name = "NAME", default_value_t = StrategyName::Guided)]
    pub strategy: StrategyName,

    /// What trying settings may cost at most, of the job's time or energy.
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    pub budget: Ratio,

    /// Look again for the best setting after so long: 30min.
    #[arg(long, value_name = "TIME", value_parser = positive_seconds)]
    pub retune_every: Option<Seconds>,

    /// Begin without what an earlier run of the same command chose.
    #[arg(long)]
    pub fresh: bool,

    /// A pattern that finds progress in the command's output, as for `measure`: a running total, or the present
    /// rate (a mean since the start follows a new setting too late).
    #[arg(long, value_name = "REGEX")]
    pub progress: Option<ProgressPattern>,

    #[command(flatten)]
    pub question: QuestionArgs,

    /// Simulated GPUs in virtual time, in place of a command: NAME, or NAME:N for several.
    #[arg(long, value_name = "GPU[:N]", help_heading = "Simulation")]
    pub simulate: Option<String>,

    /// The workload: NETWORK, NETWORK@STUDY, or your own profile file; several after commas follow each other,
    /// so that the load changes.
    #[arg(long, value_name = "NAME", help_heading = "Simulation")]
    pub network: Option<String>,

    #[command(flatten)]
    pub work: WorkArgs,

    /// Seed of everything random.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        help_heading = "Simulation"
    )]
    pub seed: u64,

    /// Write the result as JSON; `-` is standard output, which then carries nothing else.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Write the tables as Markdown; `-` as above.
    #[arg(long, value_name = "FILE")]
    pub export_md: Option<PathBuf>,

    /// Draw power over time, with the windows marked, as an SVG file; `-` as above.
    #[arg(long, value_name = "FILE")]
    pub export_svg: Option<PathBuf>,

    /// Change no device setting (also SWEETSPOT_READ_ONLY=1): nothing can be tuned then.
    #[arg(long)]
    pub read_only: bool,

    /// The command.
    #[arg(last = true, value_name = "CMD")]
    pub cmd: Vec<OsString>,
}

const TUNE_EXAMPLES: &str = "\
Examples:
  sweetspot tune -- python train.py
  sweetspot tune --objective energy --limit 'time<=+5%' -- python train.py
  sweetspot tune --knob core-clock --progress 'images/sec: ([0-9.]+)' -- ./benchmark
  sweetspot tune --export-json tune.json --export-svg tune.svg -- python train.py
  sweetspot tune --simulate v100 --network resnet50";
