//! The flags of `replay`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::figures::FigureArgs;
use super::shared::{CriteriaArgs, TextExportArgs};

/// Evaluate search strategies on recorded measurements.
///
/// Answers each evaluation that a strategy requests with the recorded point. Shows for every curve how many
/// evaluations the strategy needed, how much worse its choice is than the best recorded point (its regret), and which
/// share of the possible gain it achieves.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct ReplayArgs {
    /// A CSV file with a row for each recorded point.
    #[arg(long, value_name = "FILE", required_unless_present = "study", requires_all = ["knob", "time"])]
    pub curves: Option<PathBuf>,

    /// Your own studies, one curve each: their folders, or their names below studies/.
    #[arg(
        long,
        value_name = "STUDY,...",
        value_delimiter = ',',
        conflicts_with = "curves"
    )]
    pub study: Vec<PathBuf>,

    /// The columns with the settings that were varied. A name that contains power, cap or limit is a power cap, one
    /// that contains clock or mhz a clock, any other a parameter such as a batch size.
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub knob: Vec<String>,

    /// The column with the time in seconds.
    #[arg(long, value_name = "COL")]
    pub time: Option<String>,

    /// The column with the average power in watts.
    #[arg(long, value_name = "COL", conflicts_with = "energy")]
    pub power: Option<String>,

    /// The column with the energy in joules.
    #[arg(long, value_name = "COL")]
    pub energy: Option<String>,

    /// The columns that identify a curve. A column `gpu` or `device` also decides which curves can serve as prior
    /// knowledge for each other.
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub group: Vec<String>,

    /// The reference value of the first setting, with which all others are compared [default: the highest].
    #[arg(long, value_name = "VALUE")]
    pub reference: Option<f64>,

    /// Search strategy: exhaustive, linear, golden, guided, or all to compare them.
    #[arg(long, value_name = "NAME", default_value = "guided")]
    pub strategy: String,

    /// Prior knowledge of the guided strategy: none, leave-one-out (all the other curves), or a list of studies and of CSV
    /// files with the same columns as --curves.
    #[arg(
        long,
        value_name = "PRIOR",
        default_value = "none",
        value_delimiter = ','
    )]
    pub prior: Vec<String>,

    /// Step of the strategy linear, in the unit of the setting [default: 25 for caps, a tenth of the range for clocks].
    #[arg(long, value_name = "STEP")]
    pub step: Option<f64>,

    /// Maximum number of evaluations for each curve.
    #[arg(long, value_name = "N")]
    pub evaluations: Option<NonZeroUsize>,

    /// Seed of the random numbers of a strategy.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    pub criteria: CriteriaArgs,

    #[command(flatten)]
    pub export: TextExportArgs,

    #[command(flatten)]
    pub figures: FigureArgs,
}

/// The examples in the help text of `replay`.
const EXAMPLES: &str = "\
Examples:
  sweetspot replay --curves caps.csv --knob power_limit --time time_s --power average_w --group network --strategy all
  sweetspot replay --curves caps.csv --knob power_limit --time time_s --energy energy_j --group network --prior leave-one-out
  sweetspot replay --curves p100.csv --knob power_limit --time time_s --power average_w --group network --prior v100.csv
  sweetspot replay --study resnet50-v100 --objective energy --strategy all --export-figures figures";
