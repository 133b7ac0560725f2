//! Of `hold`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_session::hold::{CapSource, parse_cap};

use super::shared::positive_seconds;

/// Serve as fast as a power cap allows: the batch size, a clock or both are chosen while the command runs.
///
/// The command is an inference program that asks for its batch size before each batch and reports items and batch
/// times, over the link (two lines of Python, docs/hold.md). With the knob `batch` nothing is set on the device and no
/// privilege is needed; the other knobs put everything back at the end, as `run` does.
///
/// The cap may change while it runs: by --cap-file, by `sweetspot hold set 140W` from another terminal, or with the
/// device's own limit (--below device).
#[derive(Debug, Args)]
#[command(
    after_help = HOLD_EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct HoldArgs {
    #[command(subcommand)]
    pub command: Option<HoldCommand>,

    /// The power to stay below, judged by means of a second: 150W, or `device` for the limit that the device enforces,
    /// whoever sets it.
    #[arg(long, value_name = "WATTS|device", value_parser = below, allow_hyphen_values = true)]
    pub below: Option<CapSource>,

    /// A file that somebody else writes the cap to (150W); looked at ten times a second.
    #[arg(long, value_name = "FILE")]
    pub cap_file: Option<PathBuf>,

    /// What is set: batch (the batch size; nothing on the device), core-clock or power-cap (at one batch size), joint
    /// (batch size and core clock).
    #[arg(long, value_name = "KNOB", value_enum, default_value_t = KnobName::Batch, hide_possible_values = true)]
    pub knob: KnobName,

    /// The longest that 99 of 100 items may take, waiting included: 20ms.
    #[arg(long, value_name = "TIME", value_parser = latency, allow_hyphen_values = true)]
    pub latency_p99: Option<Seconds>,

    /// The batch sizes to choose from, ascending [default: 1,2,4,8,16,32,64,128,256].
    #[arg(long, value_name = "N,N,...", value_parser = batches)]
    pub batches: Option<Batches>,

    /// What is best among settings that keep cap and latency: throughput, energy-per-item.
    #[arg(long, value_name = "OBJ", value_enum, default_value_t = ObjectiveName::Throughput, hide_possible_values = true)]
    pub objective: ObjectiveName,

    /// The GPU: an index or a UUID [default: the one in CUDA_VISIBLE_DEVICES, or the only one].
    #[arg(long, value_name = "0|UUID")]
    pub device: Option<String>,

    /// How the setting is found: robust, or for comparison paper, text, windowed (the batch sizer of
    /// batch_sizer_2021 as printed, as described, as meant) and dvfs, step_up (with --knob core-clock)
    /// [default: robust; dvfs or joint as the knob has it].
    #[arg(
        long,
        value_name = "MODE",
        value_enum,
        hide_possible_values = true,
        help_heading = "Control"
    )]
    pub mode: Option<ModeName>,

    /// The batch size where only the device is set (--knob core-clock or power-cap) [default: the allowed size nearest to 16].
    #[arg(long, value_name = "N", value_parser = super::shared::whole_number, help_heading = "Control")]
    pub fixed_batch: Option<u64>,

    /// For the paper's modes: below this part of the cap there is room for more [default: 0.8].
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Control")]
    pub alpha: Option<Ratio>,

    /// Batches of a window, after which the setting is judged [default: 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Control")]
    pub window: Option<u32>,

    /// After a change nothing is judged for so long [default: 100ms].
    #[arg(long, value_name = "TIME", value_parser = positive_seconds, allow_hyphen_values = true, help_heading = "Control")]
    pub settle: Option<Seconds>,

    /// What broke the cap is tried again after so long, and then ever more rarely [default: 300s].
    #[arg(long, value_name = "TIME", value_parser = positive_seconds, allow_hyphen_values = true, help_heading = "Control")]
    pub expiry: Option<Seconds>,

    /// A size that had been good and broke the cap once is tried again after so long [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = positive_seconds, allow_hyphen_values = true, help_heading = "Control")]
    pub probe: Option<Seconds>,

    /// A program that has not asked for its batch size after so long is told of [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = positive_seconds, allow_hyphen_values = true, help_heading = "Control")]
    pub patience: Option<Seconds>,

    /// The power sensor to go by: buffer (the driver's samples), instant, average (of a second) [default: the finest
    /// there is].
    #[arg(
        long,
        value_name = "SENSOR",
        value_enum,
        hide_possible_values = true,
        help_heading = "Control"
    )]
    pub sensor: Option<SensorName>,

    /// Write the result as JSON, with batch size and power over time; `-` is standard output, which then carries
    /// nothing else.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Write a picture of power, batch size and throughput over time; `-` as above.
    #[arg(long, value_name = "FILE")]
    pub export_svg: Option<PathBuf>,

    /// Change no device setting (also SWEETSPOT_READ_ONLY=1): the knob `batch` needs none.
    #[arg(long)]
    pub read_only: bool,

    /// The command.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub cmd: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub enum HoldCommand {
    /// Give a running hold of yours another cap.
    Set {
        /// The power to stay below from now on: 140W.
        #[arg(value_name = "WATTS", value_parser = cap, allow_hyphen_values = true)]
        cap: Watts,
        /// The process id of the hold, where several run; root reaches those of others with it.
        #[arg(long, value_name = "PID")]
        pid: Option<u32>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum KnobName {
    Batch,
    CoreClock,
    PowerCap,
    Joint,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ObjectiveName {
    Throughput,
    EnergyPerItem,
}

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

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SensorName {
    Buffer,
    Instant,
    Average,
}

/// A list as one value.
#[derive(Clone, Debug)]
pub struct Batches(pub Vec<u64>);

fn batches(text: &str) -> Result<Batches, String> {
    let size = |part: &str| {
        part.trim().parse::<u64>().map_err(|_| {
            format!(
                "`{}` is not a batch size: give whole numbers above 0, ascending, with commas between: 1,2,4,8",
                part.trim()
            )
        })
    };
    let sizes = text.split(',').map(size).collect::<Result<Vec<_>, _>>()?;
    Ok(Batches(sizes))
}

fn below(text: &str) -> Result<CapSource, String> {
    text.parse()
        .map_err(|problem: sweetspot_session::hold::InvalidCap| format!("{problem}, or `device`"))
}

/// A bare number would be seconds, and latencies are thought of in milliseconds.
fn latency(text: &str) -> Result<Seconds, String> {
    match text.trim().parse::<f64>() {
        Ok(_) => Err(format!("say {0}ms or {0}s", text.trim())),
        Err(_) => positive_seconds(text),
    }
}

fn cap(text: &str) -> Result<Watts, String> {
    parse_cap(text).map_err(|problem| problem.to_string())
}

fn share(text: &str) -> Result<Ratio, String> {
    let share = text.parse::<f64>().ok();
    share
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .map(Ratio::new)
        .ok_or_else(|| "a share above 0 and at most 1 is needed".to_owned())
}

const HOLD_EXAMPLES: &str = "\
Examples:
  sweetspot hold --below 300W -- python serve.py
  sweetspot hold --below 300W --latency-p99 20ms --batches 1,2,4,8,16,32 -- python serve.py
  sweetspot hold --cap-file /run/power-cap --export-json held.json -- python serve.py
  sweetspot hold set 250W
  sweetspot simulate --gpu nvidia_h200 -- sweetspot hold --below 300W -- sweetspot sim-workload \\
    --network resnet50 --infer --serve --seconds 20";
