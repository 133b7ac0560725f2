//! Of `sweep`.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use sweetspot_decide::search::StrategyName;
use sweetspot_measure::MethodChoice;
use sweetspot_quantity::{Celsius, Ratio, Seconds, parse_bare};
use sweetspot_session::measure::{ProgressPattern, RunWindow};
use sweetspot_study::{EnergyOf, Order};

use super::shared::{ExportArgs, QuestionArgs, WorkArgs, positive_seconds};

/// Try every power cap, clock, batch size or number of GPUs, several times each, and say which is best.
///
/// Runs your command under every configuration of the chosen axes, or a simulated workload with --simulate.
/// Everything is kept in a study as it comes, so that an interrupted sweep goes on where it was. What was set
/// on the GPUs before is put back, whatever happens.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SweepArgs {
    /// A file that says what the flags say (--write-study makes one); flags given as well come first.
    #[arg(value_name = "STUDY.toml")]
    pub file: Option<PathBuf>,

    /// The GPUs: all, indices, or UUIDs [default: those in CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "all|0,1|UUID,...", conflicts_with_all = ["simulate", "node"])]
    pub device: Option<String>,

    /// Power caps to try: 150..300:5, 150,180,210, or all (steps of 5 W and both ends); 250/200 is one for each
    /// GPU of the job [default: all, where no other axis is given].
    #[arg(long, value_name = "AXIS", help_heading = "Axes")]
    pub power_cap: Option<String>,

    /// Core clocks to lock: 510,652,802, 900..1350:150, or all.
    #[arg(long, value_name = "AXIS", help_heading = "Axes")]
    pub core_clock: Option<String>,

    /// Memory clocks to lock.
    #[arg(long, value_name = "AXIS", help_heading = "Axes")]
    pub memory_clock: Option<String>,

    /// Numbers of GPUs to use: 1,2,4,8; CUDA_VISIBLE_DEVICES is set to match [default: all].
    #[arg(long, value_name = "LIST", help_heading = "Axes")]
    pub gpus: Option<String>,

    /// A parameter of the workload: batch=64,128,256. {batch} in the command becomes its value ({batch_per_gpu}
    /// its share), and so does the variable `batch` of the environment. With --simulate: batch,
    /// conv_algorithm, dataset, mode.
    #[arg(long, value_name = "NAME=LIST", value_parser = parameter, help_heading = "Axes")]
    pub axis: Vec<(String, String)>,

    /// What all is compared with: power-cap=250W,batch=64 [default: the defaults of the device, the most GPUs,
    /// the usual or first value of each parameter].
    #[arg(long, value_name = "NAME=VALUE,...", help_heading = "Axes")]
    pub reference: Option<String>,

    /// Runs of each configuration [default: 5].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Runs")]
    pub repeat: Option<u32>,

    /// More runs of a configuration, until the 95 % interval of its time and energy is so tight: 1%.
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Runs")]
    pub until: Option<Ratio>,

    /// With --until: runs of a configuration at most [default: 30].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000), help_heading = "Runs")]
    pub at_most: Option<u32>,

    /// interleaved (all configurations, then again the other way round: drift cancels), random, as-given
    /// [default: interleaved].
    #[arg(long, value_name = "ORDER", help_heading = "Runs")]
    pub order: Option<Order>,

    /// Run only what a strategy asks for, to find the best setting for --objective and --limit in few runs:
    /// guided (by a model of the GPU), golden, linear, exhaustive [default: every configuration].
    #[arg(long, value_name = "NAME", help_heading = "Runs")]
    pub strategy: Option<StrategyName>,

    /// With --strategy: runs at most.
    #[arg(long, value_name = "N", requires = "strategy", value_parser = clap::value_parser!(u32).range(2..), help_heading = "Runs")]
    pub evaluations: Option<u32>,

    /// With --strategy guided: studies of the same GPU and axes to learn from, or none
    /// [default: all below studies/].
    #[arg(
        long,
        value_name = "STUDY,...",
        value_delimiter = ',',
        requires = "strategy",
        help_heading = "Runs"
    )]
    pub prior: Vec<PathBuf>,

    /// Runs of each configuration, before its first, that do not count [default: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000), help_heading = "Runs")]
    pub warmup: Option<u32>,

    /// Time between a setting and the run [default: 500ms].
    #[arg(long, value_name = "TIME", value_parser = parse_bare::<Seconds>, help_heading = "Runs")]
    pub settle: Option<Seconds>,

    /// Begin no run while a GPU of the job is hotter: 45C.
    #[arg(long, value_name = "TEMPERATURE", value_parser = parse_bare::<Celsius>, help_heading = "Runs")]
    pub cool_to: Option<Celsius>,

    /// End a run that takes longer, and tell it as a failure.
    #[arg(long, value_name = "TIME", value_parser = positive_seconds, help_heading = "Runs")]
    pub timeout: Option<Seconds>,

    /// The part of a run that counts: run, progress or phase:NAME [default: run].
    #[arg(long, value_name = "WINDOW", help_heading = "Runs")]
    pub window: Option<RunWindow>,

    /// A pattern that finds progress in the command's output, as for `measure`.
    #[arg(long, value_name = "REGEX", value_parser = pattern, help_heading = "Runs")]
    pub progress: Option<String>,

    /// How energy is come to: auto (the best there is), counter, buffer, poll:TIME [default: auto].
    #[arg(long, value_name = "METHOD", help_heading = "Runs")]
    pub method: Option<MethodChoice>,

    /// Seed of everything random; the same seed gives the same simulated study, to the bit [default: 1].
    #[arg(long, value_name = "N", help_heading = "Runs")]
    pub seed: Option<u64>,

    /// Show what the command prints.
    #[arg(long, help_heading = "Runs")]
    pub show_output: bool,

    /// Simulated GPUs in virtual time, in place of a command: NAME, NAME:N for several, more after commas; a
    /// name (see `simulate --list`) or your own profile file.
    #[arg(long, value_name = "GPU[:N],...", help_heading = "Simulation")]
    pub simulate: Option<String>,

    /// What stands around the GPUs: power of the host, supplies, links between GPUs; its own GPUs are
    /// taken where --simulate names none.
    #[arg(long, value_name = "NODE", help_heading = "Simulation")]
    pub node: Option<String>,

    /// The workload: NETWORK, NETWORK@STUDY, or your own profile file; several after commas are a study each.
    #[arg(long, value_name = "NAME", help_heading = "Simulation")]
    pub network: Option<String>,

    #[command(flatten)]
    pub work: WorkArgs,

    /// Runs computed at a time; changes no result [default: one for each core].
    #[arg(long, value_name = "N", help_heading = "Simulation")]
    pub threads: Option<NonZeroUsize>,

    /// Whose energy counts: job-gpus, all-gpus (those that idle too), node (all that comes from the wall)
    /// [default: job-gpus].
    #[arg(long, value_name = "WHOSE", help_heading = "Answer")]
    pub energy_of: Option<EnergyOf>,

    #[command(flatten)]
    pub question: QuestionArgs,

    /// Where the study is kept: a new folder [default: studies/NAME here].
    #[arg(long, value_name = "FOLDER", help_heading = "Study")]
    pub study: Option<PathBuf>,

    /// Go on with a study that was interrupted.
    #[arg(long, value_name = "STUDY", help_heading = "Study", conflicts_with_all = [
        "file", "device", "power_cap", "core_clock", "memory_clock", "gpus", "axis", "reference", "repeat",
        "until", "at_most", "order", "warmup", "settle", "cool_to", "timeout", "window", "progress", "method",
        "seed", "simulate", "node", "network", "train", "infer", "conv_algorithm", "dataset", "batch", "items",
        "energy_of", "study", "no_samples", "write_study", "cmd", "strategy", "evaluations", "prior",
    ])]
    pub resume: Option<PathBuf>,

    /// With --resume: try again what failed.
    #[arg(long, requires = "resume", help_heading = "Study")]
    pub retry_failed: bool,

    /// Keep no study: the answer is all there is.
    #[arg(long, conflicts_with_all = ["study", "resume"], help_heading = "Study")]
    pub no_study: bool,

    /// Keep no power samples in the study.
    #[arg(long, help_heading = "Study")]
    pub no_samples: bool,

    /// Write a file that says what these flags say, and run nothing.
    #[arg(long, value_name = "FILE", help_heading = "Study")]
    pub write_study: Option<PathBuf>,

    /// Show what would be run and how long it would take, and run nothing.
    #[arg(long, help_heading = "Study")]
    pub dry_run: bool,

    /// Ask nothing: a study of very many runs begins at once.
    #[arg(long, short, help_heading = "Study")]
    pub yes: bool,

    #[command(flatten)]
    pub export: ExportArgs,

    /// Change no device setting (also SWEETSPOT_READ_ONLY=1): only --gpus and --axis can be varied.
    #[arg(long)]
    pub read_only: bool,

    /// Your own command, run on real GPUs.
    #[arg(last = true, value_name = "CMD")]
    pub cmd: Vec<OsString>,
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, values) = text
        .split_once('=')
        .ok_or("write NAME=VALUE,..., such as batch=64,128")?;
    Ok((name.trim().to_owned(), values.to_owned()))
}

fn pattern(text: &str) -> Result<String, String> {
    let pattern: Result<ProgressPattern, _> = text.parse();
    pattern
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

pub fn share(text: &str) -> Result<Ratio, String> {
    let share: Ratio = text
        .parse()
        .or_else(|_| parse_bare(text))
        .map_err(|_| "write a percentage, such as 1%")?;
    match share > Ratio::ZERO && share < Ratio::new(1.0) {
        true => Ok(share),
        false => Err("it must be more than 0 % and less than 100 %".to_owned()),
    }
}

const EXAMPLES: &str = "\
Examples:
  sweetspot sweep --power-cap 150..300:10 --repeat 3 -- python train.py
  sweetspot sweep --power-cap all --strategy guided --objective edp -- python train.py
  sweetspot sweep --core-clock all --axis batch=64,128 -- python train.py --batch {batch}
  sweetspot sweep --gpus 1,2,4 -- torchrun --nproc-per-node {gpus} train.py
  sweetspot sweep --resume studies/train
  sweetspot sweep --simulate v100 --network resnet50
  sweetspot sweep --simulate tesla_p100 --network vgg16 --infer --core-clock all
  sweetspot sweep --node node_power_capping_2023 --network xception --gpus 1,8 --energy-of node
  sweetspot sweep --simulate v100 --network resnet50 --export-json study.json --export-csv -";
