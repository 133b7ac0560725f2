//! Of `replay`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::report::FigureArgs;
use super::shared::{QuestionArgs, TextExportArgs};

/// Try search strategies against recorded measurements, without a GPU.
///
/// Each evaluation that a strategy asks for is answered by the recorded point. Says for every curve how many
/// evaluations were needed, how much worse the choice is than the best recorded point (its regret), and which
/// share of the possible gain it brings.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct ReplayArgs {
    /// A CSV file with a row for each recorded point.
    #[arg(long, value_name = "FILE", required_unless_present = "study", requires_all = ["knob", "time"])]
    pub curves: Option<PathBuf>,

    /// Studies of your own, a curve each: their folders, or their names below studies/.
    #[arg(
        long,
        value_name = "STUDY,...",
        value_delimiter = ',',
        conflicts_with = "curves"
    )]
    pub study: Vec<PathBuf>,

    /// The column that was varied, or several with commas; a name with power, cap or limit in it is a cap, one
    /// with clock or mhz a clock, any other a level such as a batch size.
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

    /// The columns that tell one curve from another; a column `gpu` or `device` tells which curves can teach
    /// about each other.
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub group: Vec<String>,

    /// The value of the first knob that the others are compared with [default: the highest].
    #[arg(long, value_name = "VALUE")]
    pub reference: Option<f64>,

    /// exhaustive, linear, golden, guided, or all side by side.
    #[arg(long, value_name = "NAME", default_value = "guided")]
    pub strategy: String,

    /// What the guided strategy knows beforehand: none, leave-one-out (what the other curves teach), or studies
    /// with commas between.
    #[arg(
        long,
        value_name = "PRIOR",
        default_value = "none",
        value_delimiter = ','
    )]
    pub prior: Vec<String>,

    /// Of linear, in the unit of the knob [default: 25 for caps, a tenth of the range for clocks].
    #[arg(long, value_name = "STEP")]
    pub step: Option<f64>,

    /// No more evaluations of a curve than this.
    #[arg(long, value_name = "N")]
    pub evaluations: Option<NonZeroUsize>,

    /// Seed of what is random in a strategy.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    pub question: QuestionArgs,

    #[command(flatten)]
    pub export: TextExportArgs,

    #[command(flatten)]
    pub figures: FigureArgs,
}

const EXAMPLES: &str = "\
Examples:
  sweetspot replay --curves caps.csv --knob power_limit --time time_s --power average_w --group network --strategy all
  sweetspot replay --curves caps.csv --knob power_limit --time time_s --energy energy_j --group network --prior leave-one-out
  sweetspot replay --study resnet50-v100 --objective energy --strategy all --export-figures figures";
