//! Of `measure`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use sweetspot_measure::MethodChoice;
use sweetspot_session::measure::{ProgressPattern, RunWindow};

use super::shared::TextExportArgs;

/// Measure the time and energy of a command: per GPU and phase, with the method and its uncertainty.
///
/// Nothing is set on any device. The command's own exit code is passed on. A program that marks its phases and
/// progress (docs/link.md: two lines of Python) gets energy per phase and per item.
#[derive(Debug, Args)]
#[command(after_help = MEASURE_EXAMPLES)]
pub struct MeasureArgs {
    /// The GPUs: all, indices, or UUIDs [default: those in CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "all|0,1|UUID,...")]
    pub device: Option<String>,

    /// Runs to measure.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,

    /// Runs before them that are not measured.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub warmup: u32,

    /// A shell command before each run, not measured.
    #[arg(long, value_name = "CMD")]
    pub prepare: Option<String>,

    /// The part of a run that counts: run, progress (from the first report of progress to the last) or
    /// phase:NAME (from its first begin to its last end) [default: run].
    #[arg(long, value_name = "WINDOW")]
    pub window: Option<RunWindow>,

    /// So many reports of progress are the window.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,

    /// Reports of progress to leave out before the window.
    #[arg(long, value_name = "N")]
    pub skip: Option<u64>,

    /// Measure the idle GPUs for 5 s first, and show the energy above that as well.
    #[arg(long)]
    pub idle: bool,

    /// A pattern that finds progress in the command's output: its group is the items done so far, or items a
    /// second where the pattern says so (`images/sec: ([0-9.]+)`); or name it `(?<items>..)`,
    /// `(?<more>..)`, `(?<rate>..)`.
    #[arg(long, value_name = "REGEX")]
    pub progress: Option<ProgressPattern>,

    /// How energy is come to: auto (the best there is), counter, buffer, poll:TIME.
    #[arg(long, value_name = "METHOD", default_value_t)]
    pub method: MethodChoice,

    #[command(flatten)]
    pub export: TextExportArgs,

    /// Write every reading as Parquet: power, energy, utilisation, clocks, temperature, throttling.
    #[arg(long, value_name = "FILE")]
    pub export_samples: Option<PathBuf>,

    /// Change no device setting: `measure` never does (also SWEETSPOT_READ_ONLY=1).
    #[arg(long)]
    pub read_only: bool,

    /// The command.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub cmd: Vec<OsString>,
}

const MEASURE_EXAMPLES: &str = "\
Examples:
  sweetspot measure -- python train.py
  sweetspot measure --runs 5 --warmup 1 --export-json runs.json -- python train.py
  sweetspot measure --progress 'images/sec: ([0-9.]+)' -- ./benchmark
  sweetspot measure --window phase:train --method poll:500ms -- python train.py";
