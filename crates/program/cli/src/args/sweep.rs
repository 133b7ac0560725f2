//! The flags of `sweep`.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use sweetspot_decide::search::StrategyName;
use sweetspot_http::Url;
use sweetspot_measure::MethodChoice;
use sweetspot_quantity::{Celsius, Ratio, Seconds, parse_bare};
use sweetspot_session::measure::{ProgressSource, RunWindow};
use sweetspot_study::{Certainty, EnergyOf, Order, Until};

use super::meters::MeterArgs;
use super::shared::{
    CriteriaArgs, ExportArgs, PreferArgs, SudoArgs, TrainingArgs, WorkArgs, parse_network,
    parse_positive_seconds,
};
use super::slurm::SlurmSweepArgs;

/// Try power caps, clocks or batch sizes, and recommend the best.
///
/// Runs your command, or a simulated workload with --simulate, under every configuration of the chosen axes (power
/// caps, clocks, batch sizes, numbers of GPUs), several times each. Without axes it finds the best power cap for your
/// command in about six runs. The reference runs first and tells how long the rest will take. Each run is stored in a
/// study as soon as it ends, so that an interrupted sweep can be resumed. The previous settings of the GPUs are
/// restored, whatever happens.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SweepArgs {
    /// A study file with the same options as the flags (--write-study creates one); flags override it.
    #[arg(value_name = "STUDY.toml")]
    pub file: Option<PathBuf>,

    /// The GPUs to use: all, or a list of indices or UUIDs [default: those in CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "all|0,1|UUID,...", conflicts_with_all = ["simulate", "node"])]
    pub device: Option<String>,

    /// Power caps to try: 150..300:5, 150,180,210, or all (steps of 5 W and both ends of the range); 250/200 gives each
    /// GPU of the job its own cap [default: all, if no other axis is given; a command is run at a few of them].
    #[arg(long, value_name = "AXIS", help_heading = "Axes")]
    pub power_cap: Option<String>,

    /// Core clocks to try: 510,652,802, 900..1350:150, or all.
    #[arg(long, value_name = "AXIS", help_heading = "Axes")]
    pub core_clock: Option<String>,

    /// Memory clocks to try.
    #[arg(long, value_name = "AXIS", help_heading = "Axes")]
    pub memory_clock: Option<String>,

    /// Power caps of each processor package to try: 100..200:20; needs --energy-of node, because the energy of the GPUs
    /// does not include the processors.
    #[arg(long, value_name = "AXIS", help_heading = "Axes")]
    pub cpu_power_cap: Option<String>,

    /// Numbers of GPUs to try: 1,2,4,8; CUDA_VISIBLE_DEVICES is set accordingly [default: all GPUs].
    #[arg(long, value_name = "LIST", help_heading = "Axes")]
    pub gpus: Option<String>,

    /// A parameter of the workload and its values: batch=64,128,256. {batch} in the command is replaced by the value,
    /// {batch_per_gpu} by its share for one GPU, and the environment variable `batch` is set to the value. With
    /// --simulate: batch, conv_algorithm, dataset, mode.
    #[arg(long, value_name = "NAME=LIST", value_parser = parse_parameter, help_heading = "Axes")]
    pub axis: Vec<(String, String)>,

    /// The configuration that all others are compared with: power-cap=250W,batch=64 [default: the default settings of
    /// the device, the highest number of GPUs, the usual or first value of each parameter].
    #[arg(long, value_name = "NAME=VALUE,...", help_heading = "Axes")]
    pub reference: Option<String>,

    /// Number of runs of each configuration [default: 5]. With --resume: add runs to the study until each configuration
    /// has this number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Runs")]
    pub repeat: Option<u32>,

    /// Repeat a configuration until the 95 % confidence intervals of time and energy are within this share of the mean:
    /// 1%. `sure` adds runs only where they change the recommendation, until it is certain.
    #[arg(long, value_name = "SHARE|sure", value_parser = parse_until, help_heading = "Runs")]
    pub until: Option<Until>,

    /// With --until: maximum number of runs of a configuration [default: 30].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000), help_heading = "Runs")]
    pub at_most: Option<u32>,

    /// Order of the runs: interleaved (all configurations, then all again in reverse order, so that drift cancels),
    /// random, as-given [default: interleaved].
    #[arg(long, value_name = "ORDER", help_heading = "Runs")]
    pub order: Option<Order>,

    /// Search for the best setting for --objective and --limit in few runs, in place of running every configuration:
    /// guided (by a model of the GPU), golden, linear, exhaustive [default: guided, for a command without axes].
    #[arg(long, value_name = "NAME", help_heading = "Runs")]
    pub strategy: Option<StrategyName>,

    /// With --strategy: maximum number of runs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..), help_heading = "Runs")]
    pub evaluations: Option<u32>,

    /// With --strategy guided: earlier studies of the same GPU and axes to learn from, or none [default: all below
    /// studies/].
    #[arg(
        long,
        value_name = "STUDY,...",
        value_delimiter = ',',
        help_heading = "Runs"
    )]
    pub prior: Vec<PathBuf>,

    /// Number of runs of each configuration before the first measured one, which do not count [default: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000), help_heading = "Runs")]
    pub warmup: Option<u32>,

    /// How long to wait between changing a setting and starting the run [default: 500ms].
    #[arg(long, value_name = "TIME", value_parser = parse_bare::<Seconds>, help_heading = "Runs")]
    pub settle: Option<Seconds>,

    /// Before each run, wait until all GPUs of the job have cooled to this temperature: 45C.
    #[arg(long, value_name = "TEMPERATURE", value_parser = parse_bare::<Celsius>, help_heading = "Runs")]
    pub cool_to: Option<Celsius>,

    /// Stop a run that takes longer than this, and mark it as failed.
    #[arg(long, value_name = "TIME", value_parser = parse_positive_seconds, help_heading = "Runs")]
    pub timeout: Option<Seconds>,

    /// The part of each run to measure: run, progress, phase:NAME or steady, as with `measure` [default: run;
    /// steady with --metrics].
    #[arg(long, value_name = "WINDOW", help_heading = "Runs")]
    pub window: Option<RunWindow>,

    /// Where progress is found in the command's output, as with `measure` [default: auto, or none if parameters or
    /// numbers of GPUs are axes, because a step is then not always the same work].
    #[arg(long, value_name = "NAME|REGEX", value_parser = parse_progress, help_heading = "Runs")]
    pub progress: Option<String>,

    /// Count the tokens that a server reports on its metrics page, as with `measure`.
    #[arg(long, value_name = "URL", help_heading = "Runs")]
    pub metrics: Option<Url>,

    /// Measurement method, as with `measure`: auto, counter, buffer, poll:TIME [default: auto].
    #[arg(long, value_name = "METHOD", help_heading = "Runs")]
    pub method: Option<MethodChoice>,

    /// Seed of all random numbers; the same seed gives exactly the same simulated study [default: 1].
    #[arg(long, value_name = "N", help_heading = "Runs")]
    pub seed: Option<u64>,

    /// Show the output of the command.
    #[arg(long, help_heading = "Runs")]
    pub show_output: bool,

    /// Simulate these GPUs in virtual time, in place of running a command: NAME, or NAME:N for several, separated by
    /// commas; a name (see `simulate --list`) or a profile file of yours.
    #[arg(long, value_name = "GPU[:N],...", help_heading = "Simulation")]
    pub simulate: Option<String>,

    /// The host model: power of the host and its power supplies, links between GPUs; without --simulate, also the GPUs
    /// of that node.
    #[arg(long, value_name = "NODE", help_heading = "Simulation")]
    pub node: Option<String>,

    /// The workload: NETWORK, NETWORK@STUDY, an .onnx file, or a profile file of yours. Can be given several times: the networks are
    /// swept one after the other, and each gets its own study.
    #[arg(long, value_name = "NAME", value_parser = parse_network, help_heading = "Simulation")]
    pub network: Vec<String>,

    #[command(flatten)]
    pub work: WorkArgs,

    /// Number of threads that compute runs; it does not change results [default: one for each core].
    #[arg(long, value_name = "N", help_heading = "Simulation")]
    pub threads: Option<NonZeroUsize>,

    /// Which energy to use: job-gpus, all-gpus (idle ones included), node (at the wall socket, with --meter) [default: job-gpus].
    #[arg(long, value_name = "WHOSE", help_heading = "Recommendation")]
    pub energy_of: Option<EnergyOf>,

    #[command(flatten, next_help_heading = "Recommendation")]
    pub meters: MeterArgs,

    #[command(flatten)]
    pub criteria: CriteriaArgs,

    #[command(flatten)]
    pub prefer: PreferArgs,

    #[command(flatten)]
    pub training: TrainingArgs,

    /// What the study reproduces: PAPER:NETWORK:GPU; `reproduce --on-this-gpu` gives it.
    #[arg(long, value_name = "PAPER", hide = true)]
    pub reproduces: Option<String>,

    /// Store the study in this new folder [default: studies/NAME].
    #[arg(long, value_name = "FOLDER", help_heading = "Study")]
    pub study: Option<PathBuf>,

    /// Resume an interrupted study, or add runs to a study (with a larger --repeat, or with --until).
    #[arg(long, value_name = "STUDY", help_heading = "Study", conflicts_with_all = [
        "file", "device", "power_cap", "core_clock", "memory_clock", "cpu_power_cap", "gpus", "axis", "reference",
        "order", "warmup", "settle", "cool_to", "timeout", "window", "progress", "metrics", "method",
        "seed", "simulate", "node", "network", "train", "infer", "conv_algorithm", "dataset", "batch", "items",
        "energy_of", "meter", "host", "calibration", "study", "no_samples", "write_study", "cmd", "strategy", "evaluations", "prior",
    ])]
    pub resume: Option<PathBuf>,

    /// With --resume: retry failed runs.
    #[arg(long, requires = "resume", help_heading = "Study")]
    pub retry_failed: bool,

    /// Store no study, only show the results.
    #[arg(long, conflicts_with_all = ["study", "resume"], help_heading = "Study")]
    pub no_study: bool,

    /// Store no power samples in the study.
    #[arg(long, help_heading = "Study")]
    pub no_samples: bool,

    /// Write a study file with the options of these flags, and run nothing.
    #[arg(long, value_name = "FILE", help_heading = "Study")]
    pub write_study: Option<PathBuf>,

    /// Show the planned runs and how long they would take, and run nothing.
    #[arg(long, help_heading = "Study")]
    pub dry_run: bool,

    /// Start a study with very many runs, or one that takes more than an hour, without asking.
    #[arg(long, short, help_heading = "Study")]
    pub yes: bool,

    #[command(flatten)]
    pub slurm: SlurmSweepArgs,

    #[command(flatten)]
    pub export: ExportArgs,

    #[command(flatten)]
    pub sudo: SudoArgs,

    /// Never change a device setting (also SWEETSPOT_READ_ONLY=1); only --gpus and --axis work then.
    #[arg(long)]
    pub read_only: bool,

    /// Your command, run on real GPUs.
    #[arg(last = true, value_name = "CMD")]
    pub cmd: Vec<OsString>,
}

/// Parses a parameter of the workload and its values: NAME=VALUE,...
fn parse_parameter(text: &str) -> Result<(String, String), String> {
    let (name, values) = text
        .split_once('=')
        .ok_or("write NAME=VALUE,..., such as batch=64,128")?;
    Ok((name.trim().to_owned(), values.to_owned()))
}

/// Checks that a source of progress is valid.
fn parse_progress(text: &str) -> Result<String, String> {
    let source: Result<ProgressSource, _> = text.parse();
    source
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

/// Parses a percentage between 0 and 100.
pub fn parse_share(text: &str) -> Result<Ratio, String> {
    let share: Ratio = text
        .parse()
        .or_else(|_| parse_bare(text))
        .map_err(|_| "write a percentage, such as 1%")?;
    match share > Ratio::ZERO && share < Ratio::new(1.0) {
        true => Ok(share),
        false => Err("the share must be more than 0 % and less than 100 %".to_owned()),
    }
}

/// Parses when a study needs no more runs: a share or `sure`.
fn parse_until(text: &str) -> Result<Until, String> {
    match text {
        "sure" => Ok(Until::Certainty(Certainty::Sure)),
        text => parse_share(text)
            .map(Until::Precision)
            .map_err(|problem| format!("{problem}, or sure")),
    }
}

/// The examples in the help text of `sweep`.
const EXAMPLES: &str = "\
Examples:
  sweetspot sweep -- python train.py --epochs 1
  sweetspot sweep --objective energy --limit 'time<=+5%' -- python train.py --epochs 1
  sweetspot sweep --power-cap 150..300:10 --repeat 3 -- python train.py --epochs 1
  sweetspot sweep --core-clock all --axis batch=64,128 -- python train.py --batch {batch}
  sweetspot sweep --gpus 1,2,4 -- torchrun --nproc-per-node {gpus} train.py
  sweetspot sweep --resume studies/train
  sweetspot sweep --resume studies/train --repeat 10
  sweetspot sweep --simulate v100 --network resnet50
  sweetspot sweep --simulate tesla_p100 --network vgg16 --infer --core-clock all
  sweetspot sweep --node node_power_capping_2023 --network xception --gpus 1,8 --energy-of node
  sweetspot sweep --simulate v100 --network resnet50 --export-json study.json --export-csv -
  sweetspot sweep --executor slurm --slurm '--partition=gpu --gres=gpu:1' --max-jobs 8 -- python train.py";
