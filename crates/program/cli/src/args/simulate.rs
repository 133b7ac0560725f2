//! Of `simulate` and `sim-workload`.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use sweetspot_quantity::Seconds;
use sweetspot_sim::{Arrivals, Mode};

use super::shared::{VariantArgs, mode, positive_seconds, whole_number};

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

    /// Items in a batch of one rank [default: as in the study; with --serve, as `hold` asks over the link].
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

    /// Serve requests: the batch size is asked for over the link before each batch, and batch times, latencies and
    /// the queue are told.
    #[arg(long, requires = "infer", conflicts_with = "ranks")]
    pub serve: bool,

    /// How requests come: closed (the next whenever the last is answered), poisson:RATE (requests a second),
    /// bursts:LOW,HIGH,PERIOD (two rates in turn), trace:FILE (seconds from the start, one on each line)
    /// [default: closed].
    #[arg(long, value_name = "PROCESS", requires = "serve")]
    pub arrivals: Option<Arrivals>,

    /// Seed of random arrivals.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "serve")]
    pub seed: u64,
}

const WORKLOAD_EXAMPLES: &str = "\
Examples:
  sweetspot simulate --gpu v100 -- sweetspot sim-workload --network resnet50 --batch 64 --seconds 5
  sweetspot simulate --gpu tesla_p40 -- sweetspot sim-workload --network resnet50 --infer --serve --batch 8 \
    --arrivals poisson:100 --seconds 5";
