//! The flags of `report`.

use std::path::PathBuf;

use clap::Args;
use sweetspot_decide::Mean;
use sweetspot_study::EnergyOf;

use super::figures::FigureArgs;
use super::shared::{CriteriaArgs, ExportArgs, PreferArgs, TrainingArgs};

/// Summarise a study: the best setting, its uncertainty, figures.
///
/// Shows the recommendation first, then the best setting by each metric, then the settings that are better than the
/// reference. --export-html writes a page with figures that any browser can open without a network connection.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub struct ReportArgs {
    /// The study: its folder, or its name below studies/.
    pub study: PathBuf,

    /// Which energy to use: job-gpus, all-gpus, node [default: as in the study].
    #[arg(long, value_name = "WHOSE", help_heading = "Recommendation")]
    pub energy_of: Option<EnergyOf>,

    #[command(flatten)]
    pub criteria: CriteriaArgs,

    #[command(flatten)]
    pub prefer: PreferArgs,

    #[command(flatten)]
    pub training: TrainingArgs,

    /// Find the best value of this axis, with the objective averaged over the other axes: core-clock, power-cap, batch.
    #[arg(long, value_name = "AXIS", help_heading = "Recommendation")]
    pub by: Option<String>,

    /// With --by: average over these axes only; the others keep their reference value [default: all others].
    #[arg(
        long,
        value_name = "AXIS,...",
        value_delimiter = ',',
        requires = "by",
        help_heading = "Recommendation"
    )]
    pub over: Vec<String>,

    /// With --by: the mean to use, geometric (of ratios to the reference) or arithmetic.
    #[arg(
        long,
        value_name = "MEAN",
        default_value_t,
        requires = "by",
        help_heading = "Recommendation"
    )]
    pub mean: Mean,

    /// Runs to plot over time, by their numbers in `study show` [default: one of the reference and one of the best
    /// setting].
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub run: Vec<u64>,

    #[command(flatten)]
    pub export: ExportArgs,

    #[command(flatten)]
    pub figures: FigureArgs,
}

/// The examples in the help text of `report`.
const REPORT_EXAMPLES: &str = "\
Examples:
  sweetspot report resnet50-v100
  sweetspot report resnet50-v100 --objective energy --limit 'time<=+5%'
  sweetspot report resnet50-v100 --export-html report.html --export-figures figures --png
  sweetspot report resnet50-v100 --export-pdf figures.pdf --figure-width one-column
  sweetspot report vgg16-tesla_p100 --objective energy-per-item --by core-clock --over memory-clock,batch";
