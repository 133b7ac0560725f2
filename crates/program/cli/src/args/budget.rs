//! The flags of `budget`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_session::budget::GpuOption;

use super::hold::parse_watts;
use super::shared::{SudoArgs, parse_positive_seconds};

/// Keep all GPUs together under a power budget.
///
/// Gives each GPU a power cap so that their sum stays below the budget, and moves watts to where they bring most: for each
/// program that reports its progress it measures how throughput depends on the power cap. Other programs share what is
/// left by the power that they take. Caps are lowered first, and others are raised after the GPUs have followed.
///
/// The budget is kept until you press Ctrl-C or --for is over; then every GPU has its earlier power cap again. You can
/// change it meanwhile: with --cap-file, or with `sweetspot budget set 3kW` in another terminal.
#[derive(Debug, Args)]
#[command(
    after_help = BUDGET_EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
pub struct BudgetArgs {
    #[command(subcommand)]
    pub command: Option<BudgetCommand>,

    /// The budget: 1200W, 4kW.
    #[arg(long, value_name = "POWER", value_parser = parse_watts, allow_hyphen_values = true, required_unless_present = "cap_file")]
    pub below: Option<Watts>,

    /// What the budget is for: gpus (the sum of the GPUs' power) or node (the whole machine, which needs --meter).
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = BudgetOf::Gpus, hide_possible_values = true)]
    pub of: BudgetOf,

    /// The power meter of the whole machine, for --of node: a name in ~/.config/sweetspot/meters.toml, wt310:/dev/usbtmc0,
    /// shelly:http://ADDRESS and others (see docs/reference/node.md); repeat it for a machine with several supplies.
    #[arg(long, value_name = "SPEC|NAME")]
    pub meter: Vec<String>,

    /// A file that contains the budget (4kW) and that another program may change; it is read ten times a second.
    #[arg(long, value_name = "FILE")]
    pub cap_file: Option<PathBuf>,

    /// The GPUs that share the budget [default: those in CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "all|0|0,1|UUID,...")]
    pub device: Option<String>,

    /// The least power of a GPU while a program runs there: 0=200W; repeat it for other GPUs.
    #[arg(long, value_name = "GPU=POWER", value_parser = parse_floor)]
    pub floor: Vec<GpuOption<Watts>>,

    /// How much the throughput of a GPU counts, 1 for the others: 0=2 counts twice; repeat it for other GPUs.
    #[arg(long, value_name = "GPU=NUMBER", value_parser = parse_priority)]
    pub priority: Vec<GpuOption<f64>>,

    /// End after this time: 30min, 8h [default: Ctrl-C ends it].
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive_seconds)]
    pub time: Option<Seconds>,

    /// Write the result as JSON, with power, budget and caps over time; `-` writes it to standard output in place of the
    /// summary.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    #[command(flatten)]
    pub sudo: SudoArgs,

    /// Never change a device setting (also SWEETSPOT_READ_ONLY=1); no budget can be kept then.
    #[arg(long)]
    pub read_only: bool,
}

#[derive(Debug, Subcommand)]
pub enum BudgetCommand {
    /// Change the budget that is being kept.
    Set {
        /// The new budget: 3kW.
        #[arg(value_name = "POWER", value_parser = parse_watts, allow_hyphen_values = true)]
        budget: Watts,
        /// The process id of the budget, required if several are running; root may name one of another user.
        #[arg(long, value_name = "PID")]
        pid: Option<u32>,
    },
}

/// What a budget is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BudgetOf {
    Gpus,
    Node,
}

/// The examples in the help text of `budget`.
const BUDGET_EXAMPLES: &str = "\
Examples:
  sweetspot budget --below 4kW
  sweetspot budget --below 1200W --device 0,1,2,3 --floor 0=250W --priority 0=2
  sweetspot budget --cap-file /run/power-budget
  sweetspot budget set 3kW
  sweetspot measure -- python train.py        a program whose progress budget reads";

/// Parses the least power of a GPU, `0=200W`.
fn parse_floor(text: &str) -> Result<GpuOption<Watts>, String> {
    parse_option(text, "0=200W", |value| parse_watts(value).ok())
}

/// Parses the priority of a GPU, `0=2`.
fn parse_priority(text: &str) -> Result<GpuOption<f64>, String> {
    parse_option(text, "0=2", |value| {
        let number = value.parse::<f64>().ok();
        number.filter(|number| number.is_finite() && *number > 0.0)
    })
}

/// Parses `GPU=VALUE`.
fn parse_option<T>(
    text: &str,
    example: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<GpuOption<T>, String> {
    let parsed = text.split_once('=').and_then(|(gpu, value)| {
        Some(GpuOption {
            gpu: gpu.trim().parse().ok()?,
            value: parse(value.trim())?,
        })
    });
    parsed.ok_or_else(|| format!("give the index of a GPU and a value above 0, such as {example}"))
}
