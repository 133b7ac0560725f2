//! The flags of `hold`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sweetspot_control::hold::CapOn;
use sweetspot_control::slo::Slo;
use sweetspot_control::tune::SettingsScope;
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_session::hold::{CapSource, parse_cap};
use sweetspot_sim::Arrivals;

use super::figures::PaperArgs;
use super::metrics::MetricsArgs;
use super::shared::{SudoArgs, parse_network, parse_positive_seconds};

/// Get the highest throughput under a power cap.
///
/// Chooses the batch size, the clock or both while the command runs.
///
/// The command is an inference program that asks for its batch size before each batch and reports items and batch times
/// over a shared-memory link (two lines of Python, see docs/reference/hold.md). The knob `batch` changes no device
/// setting and needs no privilege; the other knobs change device settings, which are restored at the end, as with
/// `run`.
///
/// You can change the cap while the command runs: with --cap-file, with `sweetspot hold set 140W` in another terminal,
/// or by changing the device's own power limit (--below device).
#[derive(Debug, Args)]
#[command(
    after_help = HOLD_EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct HoldArgs {
    #[command(subcommand)]
    pub command: Option<HoldCommand>,

    /// The power cap: 150W, or `device` for the power limit that the device enforces at the moment. With several GPUs it
    /// is the cap on the sum of their power, and `device` is the sum of their limits.
    #[arg(long, value_name = "WATTS|device", value_parser = parse_below, allow_hyphen_values = true)]
    pub below: Option<CapSource>,

    /// A file that contains the cap (150W) and that another program may change; it is read ten times a second.
    #[arg(long, value_name = "FILE")]
    pub cap_file: Option<PathBuf>,

    /// What the cap binds: mean:TIME (the mean power over a time, as for a power supply) or reading (every single reading,
    /// as for a circuit breaker) [default: mean:1s; reading with the paper's modes, which support nothing else].
    #[arg(long, value_name = "mean:TIME|reading")]
    pub cap_on: Option<CapOn>,

    #[command(flatten)]
    pub metrics: MetricsArgs,

    /// Send a small streamed request to the server every five seconds and time its tokens, where the histograms of its page
    /// are too coarse. The server must have OpenAI's /v1/completions at the same address.
    #[arg(long, requires = "metrics", help_heading = "Server")]
    pub probe_request: bool,

    /// With --metrics: keep this latency bound with the lowest core clock; can be given several times. ttft is the time to
    /// the first token, itl the time between tokens, e2e that of a request: ttft-p99=500ms, itl-p95=40ms
    /// (docs/how-to/serving.md).
    #[arg(long, value_name = "NAME-pNN=TIME", requires = "metrics", conflicts_with_all = ["simulate", "cap_file", "cap_on", "settings", "mode", "latency_p99", "batches", "fixed_batch", "alpha", "window", "settle", "expiry", "probe", "patience", "sensor"], help_heading = "Server")]
    pub slo: Vec<Slo>,

    /// With --slo: hold a server that runs already, in place of a command. It is never signalled; the hold ends when it
    /// exits, after --duration, or with Ctrl-C.
    #[arg(
        long,
        value_name = "PID",
        conflicts_with = "cmd",
        help_heading = "Server"
    )]
    pub attach: Option<u32>,

    /// With --attach: how long to hold.
    #[arg(long, value_name = "TIME", value_parser = parse_positive_seconds, requires = "attach", help_heading = "Server")]
    pub duration: Option<Seconds>,

    /// What to adjust: auto (the device's own power cap and the batch size together, or only the batch size if you may
    /// not change device settings), batch (the batch size; changes no device setting), core-clock or power-cap (at a
    /// fixed batch size), joint (batch size and core clock).
    #[arg(long, value_name = "KNOB", value_enum, default_value_t = KnobName::Auto, hide_possible_values = true)]
    pub knob: KnobName,

    /// The highest allowed 99th percentile of item latency, including time in the queue: 20ms.
    #[arg(long, value_name = "TIME", value_parser = parse_latency, allow_hyphen_values = true)]
    pub latency_p99: Option<Seconds>,

    /// The allowed batch sizes, in ascending order [default: with --knob auto 1 to 256 in steps of at most a sixteenth,
    /// else 1,2,4,8,16,32,64,128,256].
    #[arg(long, value_name = "N,N,...", value_parser = parse_batches)]
    pub batches: Option<Batches>,

    /// What to optimise among the settings that respect cap and latency: throughput or energy-per-item, with --slo only
    /// energy [default: throughput, with --slo energy].
    #[arg(long, value_name = "OBJ", value_enum, hide_possible_values = true)]
    pub objective: Option<ObjectiveName>,

    /// The GPUs that the program uses together: `all`, indices or UUIDs, separated by commas [default: those in
    /// CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "0,1|UUID")]
    pub device: Option<String>,

    /// Whether several GPUs get the same power cap (same), or watts move from GPUs that wait to those that the others wait
    /// for (each).
    #[arg(long, value_name = "same|each", default_value_t = SettingsScope::Each)]
    pub settings: SettingsScope,

    /// The control algorithm: robust; for comparison, the batch sizer of the paper batch_sizer_2021 as its algorithm is
    /// printed (paper), as its text describes it (text), or with readings that are cleared after each decision
    /// (windowed); with --knob core-clock dvfs or step_up. The paper's modes decide by the highest power reading of ten
    /// batches [default: robust; dvfs or joint if the knob requires it].
    #[arg(
        long,
        value_name = "MODE",
        value_enum,
        hide_possible_values = true,
        help_heading = "Control"
    )]
    pub mode: Option<ModeName>,

    /// The batch size with --knob core-clock or power-cap [default: the allowed size nearest to 16].
    #[arg(long, value_name = "N", value_parser = super::shared::parse_count, help_heading = "Control")]
    pub fixed_batch: Option<u64>,

    /// For the paper's algorithms: increase the batch size while power is below this share of the cap [default: 0.8].
    #[arg(long, value_name = "SHARE", value_parser = parse_alpha, help_heading = "Control")]
    pub alpha: Option<Ratio>,

    /// Number of batches after which a setting is evaluated [default: 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Control")]
    pub window: Option<u32>,

    /// How long to ignore measurements after a change of setting [default: 100ms].
    #[arg(long, value_name = "TIME", value_parser = parse_positive_seconds, allow_hyphen_values = true, help_heading = "Control")]
    pub settle: Option<Seconds>,

    /// Retry a setting that exceeded the cap after this time; the time doubles with each failure [default: 300s].
    #[arg(long, value_name = "TIME", value_parser = parse_positive_seconds, allow_hyphen_values = true, help_heading = "Control")]
    pub expiry: Option<Seconds>,

    /// Retry a setting that had respected the cap before and exceeded it once after this time [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = parse_positive_seconds, allow_hyphen_values = true, help_heading = "Control")]
    pub probe: Option<Seconds>,

    /// Warn if the program has not asked for its batch size after this time [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = parse_positive_seconds, allow_hyphen_values = true, help_heading = "Control")]
    pub patience: Option<Seconds>,

    /// The power sensor to use: buffer (samples buffered by the driver), instant, average (over a second) [default: the
    /// one with the finest time resolution].
    #[arg(
        long,
        value_name = "SENSOR",
        value_enum,
        hide_possible_values = true,
        help_heading = "Control"
    )]
    pub sensor: Option<SensorName>,

    /// Write the result as JSON, with batch size and power over time; `-` writes it to standard output in place of the
    /// summary.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Draw power, batch size and throughput over time as an SVG file; `-` writes it to standard output.
    #[arg(long, value_name = "FILE")]
    pub export_svg: Option<PathBuf>,

    #[command(flatten)]
    pub paper: PaperArgs,

    /// Simulate these GPUs (h200, v100:2) and a program that serves requests on them in virtual time, in place of running a
    /// command. Several GPUs divide each batch among them.
    #[arg(
        long,
        value_name = "GPU[:N],...",
        requires = "network",
        conflicts_with_all = ["cmd", "device", "cap_file", "sensor", "patience"],
        help_heading = "Simulation"
    )]
    pub simulate: Option<String>,

    /// The workload: NETWORK, NETWORK@STUDY, an .onnx file, or a profile file of yours.
    #[arg(long, value_name = "NAME|FILE", value_parser = parse_network, help_heading = "Simulation")]
    pub network: Option<String>,

    /// The dataset, for profiles that distinguish them: imagenet, caltech.
    #[arg(
        long,
        value_name = "NAME",
        requires = "simulate",
        help_heading = "Simulation"
    )]
    pub dataset: Option<String>,

    /// How long the program serves requests [default: 120s].
    #[arg(long, value_name = "TIME", value_parser = parse_positive_seconds, help_heading = "Simulation")]
    pub seconds: Option<Seconds>,

    /// When requests arrive: closed (the next one as soon as the last one is answered), poisson:RATE (requests per
    /// second), bursts:LOW,HIGH,PERIOD (two alternating rates), trace:FILE (seconds from the start, one per line)
    /// [default: closed].
    #[arg(
        long,
        value_name = "PROCESS",
        requires = "simulate",
        help_heading = "Simulation"
    )]
    pub arrivals: Option<Arrivals>,

    /// Seed of all random numbers [default: 1].
    #[arg(long, value_name = "N", help_heading = "Simulation")]
    pub seed: Option<u64>,

    #[command(flatten)]
    pub sudo: SudoArgs,

    /// Never change a device setting (also SWEETSPOT_READ_ONLY=1); only --knob batch works then.
    #[arg(long)]
    pub read_only: bool,

    /// The command to run.
    #[arg(last = true, required_unless_present_any = ["simulate", "attach"], value_name = "CMD")]
    pub cmd: Vec<OsString>,
}

impl HoldArgs {
    /// A flag of the simulated program, if one is given. clap cannot require --simulate for them, because a command
    /// excludes it.
    pub fn simulation_flag(&self) -> Option<&'static str> {
        let given = [
            ("--network", self.network.is_some()),
            ("--dataset", self.dataset.is_some()),
            ("--seconds", self.seconds.is_some()),
            ("--arrivals", self.arrivals.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        let found = given.into_iter().find(|(_, is_given)| *is_given);
        found.map(|(flag, _)| flag)
    }
}

#[derive(Debug, Subcommand)]
pub enum HoldCommand {
    /// Change the cap of a hold that is running.
    Set {
        /// The new cap: 140W.
        #[arg(value_name = "WATTS", value_parser = parse_watts, allow_hyphen_values = true)]
        cap: Watts,
        /// The process id of the hold, required if several are running; root may name one of another user.
        #[arg(long, value_name = "PID")]
        pid: Option<u32>,
    },
}

/// The names of the knobs on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KnobName {
    Auto,
    Batch,
    CoreClock,
    PowerCap,
    Joint,
}

/// The names of the objectives on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ObjectiveName {
    Throughput,
    EnergyPerItem,
    Energy,
}

/// The names of the control algorithms on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ModeName {
    Robust,
    Paper,
    Text,
    Windowed,
    Dvfs,
    #[value(name = "step_up", alias = "step-up")]
    StepUp,
    Joint,
}

/// The names of the power sensors on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SensorName {
    Buffer,
    Instant,
    Average,
}

/// A list of batch sizes; a type of its own, because clap reads a `Vec` as a flag given several times.
#[derive(Clone, Debug)]
pub struct Batches(pub Vec<u64>);

fn parse_batches(text: &str) -> Result<Batches, String> {
    let size = |part: &str| {
        part.trim().parse::<u64>().map_err(|_| {
            format!(
                "`{}` is not a batch size: give whole numbers above 0 in ascending order, separated by commas: 1,2,4,8",
                part.trim()
            )
        })
    };
    let sizes = text.split(',').map(size).collect::<Result<Vec<_>, _>>()?;
    Ok(Batches(sizes))
}

/// Parses the power cap of --below: a power, or `device`.
fn parse_below(text: &str) -> Result<CapSource, String> {
    text.parse()
        .map_err(|problem: sweetspot_session::hold::InvalidCap| format!("{problem}, or `device`"))
}

/// Rejects a number without a unit: it would mean seconds, where people think of latencies in milliseconds.
fn parse_latency(text: &str) -> Result<Seconds, String> {
    match text.trim().parse::<f64>() {
        Ok(_) => Err(format!(
            "the unit is missing: write {0}ms or {0}s",
            text.trim()
        )),
        Err(_) => parse_positive_seconds(text),
    }
}

pub(super) fn parse_watts(text: &str) -> Result<Watts, String> {
    parse_cap(text).map_err(|problem| problem.to_string())
}

/// Parses a share above 0 and at most 1.
fn parse_alpha(text: &str) -> Result<Ratio, String> {
    let share = text.parse::<f64>().ok();
    share
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .map(Ratio::new)
        .ok_or_else(|| "give a share above 0 and at most 1".to_owned())
}

/// The examples in the help text of `hold`.
const HOLD_EXAMPLES: &str = "\
Examples:
  sweetspot hold --below 300W -- python serve.py
  sweetspot hold --below 300W --latency-p99 20ms --batches 1,2,4,8,16,32 -- python serve.py
  sweetspot hold --cap-file /run/power-cap --export-json held.json -- python serve.py
  sweetspot hold --below 900W --device 0,1 -- python serve.py --tensor-parallel 2
  sweetspot hold --objective energy --slo ttft-p99=500ms --slo itl-p95=40ms \\
    --metrics http://127.0.0.1:8000/metrics --attach 4242
  sweetspot hold set 250W
  sweetspot hold --below 450W --simulate h200 --network model.onnx
  sweetspot simulate --gpu nvidia_h200 -- sweetspot hold --below 300W -- sweetspot sim-workload \\
    --network resnet50 --infer --serve --seconds 20";
