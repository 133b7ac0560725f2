//! The flags of `simulate` and `sim-workload`.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use sweetspot_quantity::Seconds;
use sweetspot_sim::{Arrivals, Mode, TokenLengths};
use sweetspot_sim_meters::{MeterList, NamedFault};

use super::shared::{ProfilesArgs, VariantArgs, mode, parse_count, parse_positive_seconds};

/// Run a command on a host with simulated GPUs.
///
/// Every NVML client sees the GPUs. They draw power, warm up and respect their power cap in real time. All processes
/// that the command starts share them: a cap set by one process slows the workload of another.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = SIMULATE_EXAMPLES,
    group(clap::ArgGroup::new("what").required(true).multiple(true)
        .args(["gpu", "node", "list", "errors", "fit"]))
)]
pub struct SimulateArgs {
    /// The GPUs of the host: NAME, or NAME:N for several; separate different ones by commas. A profile file can be
    /// given in place of a name.
    #[arg(long, value_name = "GPU[:N],...", conflicts_with_all = ["list", "errors", "profiles"])]
    pub gpu: Option<String>,

    /// The host model; without --gpu, also the GPUs of that node.
    #[arg(long, value_name = "NODE", conflicts_with_all = ["list", "errors", "fit", "profiles"])]
    pub node: Option<String>,

    /// With --node: offer stand-ins for power meters at the node's wall socket (a Yokogawa WT310E, Shelly and Tasmota
    /// plugs, a Redfish board controller) and for the processors' energy counters, power caps and board sensors. A list
    /// such as --meters=wt310:5025,shelly offers only these, on ports of your choice.
    #[arg(
        long,
        value_name = "METER[:PORT],...",
        num_args = 0..=1,
        require_equals = true,
        requires = "node"
    )]
    pub meters: Option<Option<MeterList>>,

    /// Give a stand-in meter a fault after some good answers: METER=FAULT or METER=FAULT@ANSWERS, such as wt310=disconnect@100.
    #[arg(long, value_name = "FAULT", requires = "meters", hide = true)]
    pub meter_fault: Vec<NamedFault>,

    /// List every simulated GPU, node and workload.
    #[arg(long, conflicts_with_all = ["errors", "fit"])]
    pub list: bool,

    /// Compare the simulator with all published and measured values that its profiles are fitted to, or with those of
    /// one study; the exit code is 1 if a value is outside its tolerance.
    #[arg(long, value_name = "STUDY", num_args = 0..=1, conflicts_with = "fit")]
    pub errors: Option<Option<String>>,

    /// With --errors: show only one line for each study.
    #[arg(long, requires = "errors")]
    pub summary: bool,

    #[command(flatten)]
    pub profiles: ProfilesArgs,

    /// The former name of `sweetspot fit ROWS.csv`, which does the same.
    #[arg(long, value_name = "ROWS.csv", requires = "gpu", hide = true)]
    pub fit: Option<PathBuf>,

    /// With --fit: the network to fit, if the file contains several; also its name in the profile.
    #[arg(long, value_name = "NAME", requires = "fit", hide = true)]
    pub network: Option<String>,

    /// With --fit: the measurements are of training [default: as in the file, else training].
    #[arg(long, requires = "fit", conflicts_with = "infer", hide = true)]
    pub train: bool,

    /// With --fit: the measurements are of inference.
    #[arg(long, requires = "fit", hide = true)]
    pub infer: bool,

    /// With --fit: the file to write the profile to; `-` is standard output.
    #[arg(
        long,
        value_name = "FILE",
        requires = "fit",
        default_value = "-",
        hide = true
    )]
    pub output: PathBuf,

    /// Print the tables as Markdown.
    #[arg(long, conflicts_with_all = ["gpu", "node"])]
    pub markdown: bool,

    /// Seed of the random numbers of the sensors.
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
    /// Training or inference, if the user chose one.
    pub fn mode(&self) -> Option<Mode> {
        mode(self.train, self.infer)
    }
}

/// The examples in the help text of `simulate`.
const SIMULATE_EXAMPLES: &str = "\
Examples:
  sweetspot simulate --list
  sweetspot simulate --gpu v100:2 -- nvitop -1
  sweetspot simulate --gpu v100 -- sweetspot sim-workload --network resnet50 --items 3200
  sweetspot simulate --node node_power_capping_2023 --meters -- bash
  sweetspot simulate --errors dvfs_2019";

/// Run a stand-in training or serving program on simulated GPUs.
///
/// It runs on a simulated host (`sweetspot simulate`), in real time.
///
/// With --serve-llm it is a server of a language model, as vLLM is: it batches requests continuously, answers
/// POST /v1/completions (streamed with "stream": true) and GET /v1/models, and has vLLM's metrics on /metrics. The text of
/// answers is filler, but the times of prompts and tokens, and the power, follow the clocks and the power cap of the
/// simulated H200, the running requests and their context.
#[derive(Debug, Args)]
#[command(
    after_help = WORKLOAD_EXAMPLES,
    group(clap::ArgGroup::new("program").required(true).args(["network", "serve_llm"])),
    group(clap::ArgGroup::new("server").args(["serve", "serve_llm"]))
)]
pub struct SimWorkloadArgs {
    /// The workload: NETWORK, NETWORK@STUDY, an .onnx file, or a profile file of yours.
    #[arg(long, value_name = "NAME|FILE")]
    pub network: Option<String>,

    /// Items in a batch of one rank, or with --serve-llm the most requests that run together [default: as in the profile;
    /// when serving, as `hold` requests; at most 256 of a language model].
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub batch: Option<u64>,

    #[command(flatten)]
    pub variant: VariantArgs,

    /// Number of ranks, one GPU each: of a synchronous data-parallel job, or with --serve of a program whose GPUs divide each
    /// batch among them. All wait for the slowest.
    #[arg(long, value_name = "N", default_value = "1")]
    pub ranks: NonZeroUsize,

    /// Stop after this number of items of all ranks together, or of tokens with --serve-llm [default: as in the profile;
    /// with --serve-llm when all requests of trace:FILE are answered, else never].
    #[arg(long, value_name = "N", value_parser = parse_count, conflicts_with = "seconds")]
    pub items: Option<u64>,

    /// Stop after this time: 10, 10s, 2min.
    #[arg(long, value_name = "S", value_parser = parse_positive_seconds)]
    pub seconds: Option<Seconds>,

    /// Serve requests: ask `hold` for the batch size before each batch, and report batch times, latencies and the
    /// length of the queue.
    #[arg(long, requires = "infer")]
    pub serve: bool,

    /// Serve a language model of 8 billion parameters, whose times and power were measured on an NVIDIA H200.
    #[arg(
        long,
        conflicts_with_all = ["train", "infer", "ranks", "conv_algorithm", "dataset"],
        help_heading = "Language model"
    )]
    pub serve_llm: bool,

    /// The port of this computer for clients and metrics; 0 chooses a free one, which is printed.
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 8000,
        requires = "serve_llm",
        help_heading = "Language model"
    )]
    pub port: u16,

    /// The tokens of the requests of --arrivals: PROMPT,ANSWER,SPREAD (medians, and the standard deviation of the logarithm of
    /// a log-normal distribution), PROMPT,ANSWER (always as many), or file:FILE (PROMPT,ANSWER on each line, in order)
    /// [default: 300,200,0.6].
    #[arg(
        long,
        value_name = "LENGTHS",
        requires = "serve_llm",
        help_heading = "Language model"
    )]
    pub lengths: Option<TokenLengths>,

    /// When requests arrive: closed (the next one as soon as one is answered), poisson:RATE (requests per second),
    /// bursts:LOW,HIGH,PERIOD (two alternating rates), day:RATE,LENGTH (the rates of a day, which repeats: RATE at noon, a
    /// quarter at midnight, and short bursts of three times as many), trace:FILE (seconds from the start, one per line)
    /// [default: closed; with --serve-llm only the requests of clients].
    #[arg(long, value_name = "PROCESS", requires = "server")]
    pub arrivals: Option<Arrivals>,

    /// Seed of the random arrivals and lengths.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "server")]
    pub seed: u64,
}

/// The examples in the help text of `sim-workload`.
const WORKLOAD_EXAMPLES: &str = "\
Examples:
  sweetspot simulate --gpu v100 -- sweetspot sim-workload --network resnet50 --batch 64 --seconds 5
  sweetspot simulate --gpu tesla_p40 -- sweetspot sim-workload --network resnet50 --infer --serve --batch 8 \
    --arrivals poisson:100 --seconds 5
  sweetspot simulate --gpu nvidia_h200 -- sweetspot sim-workload --serve-llm --arrivals bursts:2,12,40s --seconds 3min
  sweetspot simulate --gpu nvidia_h200 -- sweetspot hold --objective energy --slo ttft-p99=500ms --slo itl-p95=40ms \
    --metrics http://127.0.0.1:8000/metrics -- sweetspot sim-workload --serve-llm --arrivals poisson:4 --seconds 60";
