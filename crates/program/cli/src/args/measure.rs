//! The flags of `measure`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use sweetspot_measure::MethodChoice;
use sweetspot_quantity::Seconds;
use sweetspot_session::measure::{ProgressSource, RunWindow};
use sweetspot_study::EnergyOf;

use super::meters::MeterArgs;
use super::metrics::MetricsArgs;
use super::shared::{AsRootArg, TextExportArgs, parse_positive_seconds};

/// Measure the time and energy of a command, per GPU and phase.
///
/// Shows each figure with the measurement method and its uncertainty. Changes no device setting, and exits with the
/// command's exit code. If the program marks its phases and reports its progress (two lines of Python, see
/// docs/reference/link.md), you also get the energy per phase and per item.
#[derive(Debug, Args)]
#[command(after_help = MEASURE_EXAMPLES)]
pub struct MeasureArgs {
    /// The GPUs to use: all, or a list of indices or UUIDs [default: those in CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "all|0,1|UUID,...")]
    pub device: Option<String>,

    /// Number of measured runs.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,

    /// Number of warm-up runs before the measured ones.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub warmup: u32,

    /// A shell command to run before each run; it is not measured.
    #[arg(long, value_name = "CMD")]
    pub prepare: Option<String>,

    /// The part of each run to measure: run (all of it), progress (from the first progress report to the last) or
    /// phase:NAME (from the first begin of the phase to its last end) or steady (with --metrics: from when the largest
    /// batch runs until no request waits) [default: run; steady with --metrics].
    #[arg(long, value_name = "WINDOW")]
    pub window: Option<RunWindow>,

    /// Measure this number of progress reports; implies --window progress.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,

    /// Number of progress reports to skip before the measured ones; implies --window progress.
    #[arg(long, value_name = "N")]
    pub skip: Option<u64>,

    /// First measure the idle GPUs for 5 s, and also show the energy above idle.
    #[arg(long)]
    pub idle: bool,

    /// Where progress is found in the command's output: auto (it is recognised), none (the output is not read), the name
    /// of its format (tqdm, lightning, huggingface, rich, ultralytics, fastai, keras, timm, imagenet, nanogpt, megatron,
    /// mmengine, detectron2, darknet, steps, rates) or a regular expression. The group of an expression is the number of
    /// items done so far, or items per second if the pattern contains a unit such as `images/sec: ([0-9.]+)`. To be
    /// explicit, name the group: `(?<items>..)` for the total, `(?<more>..)` for items since the last match,
    /// `(?<rate>..)` for items per second.
    #[arg(long, value_name = "NAME|REGEX", default_value = "auto")]
    pub progress: ProgressSource,

    /// Measurement method: auto (the best one available), counter (the GPU's energy counter), buffer (power samples
    /// buffered by the driver), poll:TIME (read the power sensor every TIME).
    #[arg(long, value_name = "METHOD", default_value_t)]
    pub method: MethodChoice,

    #[command(flatten)]
    pub meters: MeterArgs,

    /// Whose energy counts, for instance per item: job-gpus, or node (the whole machine, which needs --meter).
    #[arg(long, value_name = "WHOSE", default_value_t = EnergyOf::JobGpus, value_parser = parse_energy_of)]
    pub energy_of: EnergyOf,

    #[command(flatten)]
    pub metrics: MetricsArgs,

    /// Send a small streamed request to the server every five seconds and time its tokens, where the histograms of its page
    /// are too coarse. The server must have OpenAI's /v1/completions at the same address.
    #[arg(long, requires = "metrics", help_heading = "Server")]
    pub probe_request: bool,

    /// Measure a process that runs already, such as a server, in place of a command. It is never signalled; measuring
    /// ends when it exits, after --duration, or with Ctrl-C.
    #[arg(
        long,
        value_name = "PID",
        conflicts_with_all = ["cmd", "runs", "warmup", "prepare", "iterations", "skip"],
        help_heading = "Server"
    )]
    pub attach: Option<u32>,

    /// With --attach: how long to measure.
    #[arg(long, value_name = "TIME", value_parser = parse_positive_seconds, requires = "attach", help_heading = "Server")]
    pub duration: Option<Seconds>,

    #[command(flatten)]
    pub export: TextExportArgs,

    /// Write every reading to a Parquet file: power, energy, utilisation, clocks, temperature, throttling.
    #[arg(long, value_name = "FILE")]
    pub export_samples: Option<PathBuf>,

    /// Never change a device setting (also SWEETSPOT_READ_ONLY=1); `measure` never does anyway.
    #[arg(long)]
    pub read_only: bool,

    #[command(flatten)]
    pub root: AsRootArg,

    /// The command to run.
    #[arg(last = true, required_unless_present = "attach", value_name = "CMD")]
    pub cmd: Vec<OsString>,
}

/// The examples in the help text of `measure`.
const MEASURE_EXAMPLES: &str = "\
Examples:
  sweetspot measure -- python train.py
  sweetspot measure --runs 5 --warmup 1 --export-json runs.json -- python train.py
  sweetspot measure --progress 'images/sec: ([0-9.]+)' -- ./benchmark
  sweetspot measure --metrics http://127.0.0.1:8000/metrics --attach 4242 --duration 60s
  sweetspot measure --window phase:train --method poll:500ms -- python train.py
  sweetspot measure --host --meter shelly:http://192.168.1.20 -- python train.py";

/// Parses whose energy counts.
fn parse_energy_of(text: &str) -> Result<EnergyOf, String> {
    match text.parse() {
        Ok(energy_of @ (EnergyOf::JobGpus | EnergyOf::Node)) => Ok(energy_of),
        _ => Err("use job-gpus (the GPUs of --device) or node".to_owned()),
    }
}
