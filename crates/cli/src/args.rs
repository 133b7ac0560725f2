//! The flags, their help, and nothing else.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use sweetspot_decide::Objective;
use sweetspot_measure::MethodChoice;
use sweetspot_quantity::{Megahertz, Seconds, Watts, parse_bare};
use sweetspot_session::measure::{ProgressPattern, Window};
use sweetspot_sim::{Mode, Variant};
use sweetspot_study::EnergyOf;

/// Makes deep learning on GPUs cost less energy.
///
/// A GPU rarely needs all the power it may draw: a lower power cap can save a quarter of the energy for
/// some more time. Sweetspot finds the setting where that trade suits you.
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
    SimWorkload(SimWorkloadArgs),
    Measure(Box<MeasureArgs>),
    Run(RunArgs),
    /// Put back what was left changed on a GPU, after a crash or a kill.
    Restore,
    Devices(DevicesArgs),
    Doctor(DoctorArgs),
    #[command(hide = true)]
    Guard(GuardArgs),
}

/// Try every power cap, clock or number of GPUs, several times each, and say which is best.
#[derive(Debug, Args)]
#[command(after_help = SWEEP_EXAMPLES)]
pub struct SweepArgs {
    /// The simulated GPUs: NAME, NAME:N for several, more after commas; a name (see `simulate --list`) or
    /// your own profile file.
    #[arg(long, value_name = "GPU[:N],...")]
    pub simulate: Option<String>,

    /// What stands around the GPUs: power of the host, supplies, links between GPUs; its own GPUs are
    /// taken where --simulate names none.
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,

    /// The workload: NETWORK, NETWORK@STUDY, or your own profile file.
    #[arg(long, value_name = "NAME")]
    pub network: Option<String>,

    #[command(flatten)]
    pub variant: VariantArgs,

    /// Items in a batch [default: as in the study].
    #[arg(long, value_name = "N", value_parser = whole_number)]
    pub batch: Option<u64>,

    /// Items in a run [default: as in the study].
    #[arg(long, value_name = "N", value_parser = whole_number)]
    pub items: Option<u64>,

    /// Power caps to try: 150..300:5, 150,180,210, or all (steps of 5 W and both ends)
    /// [default: all, where no other axis is given].
    #[arg(long, value_name = "AXIS")]
    pub power_cap: Option<String>,

    /// Core clocks to lock: 510,652,802, 900..1350:150, or all.
    #[arg(long, value_name = "AXIS")]
    pub core_clock: Option<String>,

    /// Memory clocks to lock.
    #[arg(long, value_name = "AXIS")]
    pub memory_clock: Option<String>,

    /// Numbers of GPUs to use: 1,2,4,8 [default: all].
    #[arg(long, value_name = "LIST")]
    pub gpus: Option<String>,

    /// Whose energy counts: job-gpus, all-gpus (those that idle too), node (all that comes from the wall).
    #[arg(long, value_name = "WHOSE", default_value_t)]
    pub energy_of: EnergyOf,

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

/// Which form of a workload.
#[derive(Debug, Args)]
pub struct VariantArgs {
    /// The network is trained.
    #[arg(long, conflicts_with = "infer")]
    pub train: bool,

    /// The network is only used.
    #[arg(long)]
    pub infer: bool,

    /// How convolutions are done, where the study has it: gemm, fft, winograd.
    #[arg(long, value_name = "NAME")]
    pub conv_algorithm: Option<String>,

    /// What the network is fed with, where the study has it: imagenet, caltech.
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<String>,
}

impl VariantArgs {
    pub fn variant(&self) -> Variant {
        Variant {
            mode: mode(self.train, self.infer),
            conv_algorithm: self.conv_algorithm.clone(),
            dataset: self.dataset.clone(),
        }
    }
}

fn mode(train: bool, infer: bool) -> Option<Mode> {
    match (train, infer) {
        (true, _) => Some(Mode::Train),
        (_, true) => Some(Mode::Infer),
        _ => None,
    }
}

fn whole_number(text: &str) -> Result<u64, String> {
    let number = text.parse().ok();
    number
        .filter(|number| (1..=MOST_ITEMS).contains(number))
        .ok_or_else(|| format!("one whole number from 1 to {MOST_ITEMS} is needed"))
}

/// A billion items take years on any GPU.
const MOST_ITEMS: u64 = 1_000_000_000;

const SWEEP_EXAMPLES: &str = "\
Examples:
  sweetspot sweep --simulate v100 --network resnet50
  sweetspot sweep --simulate quadro_rtx_6000 --network vgg19 --power-cap 120..200:10
  sweetspot sweep --simulate tesla_p100 --network vgg16 --infer --core-clock all
  sweetspot sweep --node node_power_capping_2023 --network xception --gpus 1,8 --energy-of node
  sweetspot sweep --simulate v100 --network resnet50 --export-json study.json --export-csv -";

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Write the result as JSON; `-` is standard output, which then carries nothing else.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Write the result as lines of CSV; `-` as above.
    #[arg(long, value_name = "FILE")]
    pub export_csv: Option<PathBuf>,

    /// Write the tables as Markdown; `-` as above.
    #[arg(long, value_name = "FILE")]
    pub export_md: Option<PathBuf>,
}

/// Run a command on a host with simulated GPUs, which every NVML client sees.
///
/// The GPUs draw power, warm up and follow their cap in real time, shared by everything that the command
/// starts; a cap set by one process slows the workload of another.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = SIMULATE_EXAMPLES,
    group(clap::ArgGroup::new("what").required(true).multiple(true)
        .args(["gpu", "node", "list", "errors", "fit"]))
)]
pub struct SimulateArgs {
    /// The host's GPUs: NAME, NAME:N for several, more after commas; a profile file is taken for a name.
    #[arg(long, value_name = "GPU[:N],...", conflicts_with_all = ["list", "errors"])]
    pub gpu: Option<String>,

    /// What stands around the GPUs; its own GPUs are taken where --gpu names none.
    #[arg(long, value_name = "NODE", conflicts_with_all = ["list", "errors", "fit"])]
    pub node: Option<String>,

    /// List every simulated GPU, node and workload.
    #[arg(long, conflicts_with_all = ["errors", "fit"])]
    pub list: bool,

    /// Compare the simulator with every published or measured figure that its profiles are to meet, or with
    /// those of one study; exit code 1 if one is farther off than it may be.
    #[arg(long, value_name = "STUDY", num_args = 0..=1, conflicts_with = "fit")]
    pub errors: Option<Option<String>>,

    /// With --errors: only a line for each study.
    #[arg(long, requires = "errors")]
    pub summary: bool,

    /// Fit a workload profile to measured rows: a CSV file with batch, items_per_s and mean_w, or one from
    /// `sweep --export-csv`, measured on one --gpu.
    #[arg(long, value_name = "ROWS.csv", requires = "gpu")]
    pub fit: Option<PathBuf>,

    /// With --fit: the network, where the file has rows of several; its name in the profile.
    #[arg(long, value_name = "NAME", requires = "fit")]
    pub network: Option<String>,

    /// With --fit: the rows are of training [default: as the file says, else this].
    #[arg(long, requires = "fit", conflicts_with = "infer")]
    pub train: bool,

    /// With --fit: the rows are of inference.
    #[arg(long, requires = "fit")]
    pub infer: bool,

    /// With --fit: where the profile goes; `-` is standard output.
    #[arg(long, value_name = "FILE", requires = "fit", default_value = "-")]
    pub output: PathBuf,

    /// Print tables as Markdown.
    #[arg(long, conflicts_with_all = ["gpu", "node"])]
    pub markdown: bool,

    /// Seed of what is random in the sensors.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// The command to run on the host.
    #[arg(
        last = true,
        value_name = "CMD",
        required_unless_present_any = ["list", "errors", "fit"],
        conflicts_with_all = ["list", "errors", "fit"]
    )]
    pub cmd: Vec<OsString>,
}

impl SimulateArgs {
    /// Training or inference, where the user says.
    pub fn mode(&self) -> Option<Mode> {
        mode(self.train, self.infer)
    }
}

const SIMULATE_EXAMPLES: &str = "\
Examples:
  sweetspot simulate --list
  sweetspot simulate --gpu v100:2 -- nvitop -1
  sweetspot simulate --gpu v100 -- sweetspot sim-workload --network resnet50 --items 3200
  sweetspot simulate --errors dvfs_2019
  sweetspot simulate --fit rows.csv --gpu nvidia_h200 --network my_network --output my_network.toml";

/// Stand in for a training or serving program, in real time, on a simulated host.
#[derive(Debug, Args)]
#[command(after_help = WORKLOAD_EXAMPLES)]
pub struct SimWorkloadArgs {
    /// The workload: NETWORK, NETWORK@STUDY, or your own profile file.
    #[arg(long, value_name = "NAME")]
    pub network: String,

    /// Items in a batch of one rank [default: as in the study].
    #[arg(long, value_name = "N", value_parser = whole_number)]
    pub batch: Option<u64>,

    #[command(flatten)]
    pub variant: VariantArgs,

    /// Ranks of a synchronous data-parallel job, a GPU each; the slowest sets the pace.
    #[arg(long, value_name = "N", default_value = "1")]
    pub ranks: NonZeroUsize,

    /// Stop after so many items, all ranks together [default: as in the study].
    #[arg(long, value_name = "N", value_parser = whole_number, conflicts_with = "seconds")]
    pub items: Option<u64>,

    /// Stop after this time: 10, 10s, 2min.
    #[arg(long, value_name = "S", value_parser = positive_seconds)]
    pub seconds: Option<Seconds>,
}

const WORKLOAD_EXAMPLES: &str = "\
Example:
  sweetspot simulate --gpu v100 -- sweetspot sim-workload --network resnet50 --batch 64 --seconds 5";

fn positive_seconds(text: &str) -> Result<Seconds, String> {
    match parse_bare::<Seconds>(text) {
        Ok(time) if time > Seconds::ZERO => Ok(time),
        Ok(_) => Err("the time must be more than zero".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

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
    pub window: Option<Window>,

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
    pub export: ExportArgs,

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
  sweetspot run --device 0 --core-clock 1200MHz -- python train.py";

/// Show the GPUs: power and cap now, clocks, and each sensor with its measured update period.
#[derive(Debug, Args)]
pub struct DevicesArgs {
    /// The GPUs: all, indices, or UUIDs [default: those in CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "all|0,1|UUID,...")]
    pub device: Option<String>,

    /// Write the same as JSON; `-` is standard output, which then carries nothing else.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
}

/// Check what works here, and say how to mend what does not.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Write the same as JSON; `-` is standard output, which then carries nothing else.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
}

/// The guard of a run: started by it, not by people.
#[derive(Debug, Args)]
pub struct GuardArgs {
    /// The socket on which the client waits.
    pub socket: PathBuf,
}
