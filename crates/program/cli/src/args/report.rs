//! Of `report` and `compare`.

use std::path::PathBuf;

use clap::Args;
use sweetspot_decide::Mean;
use sweetspot_study::EnergyOf;

use super::shared::{ExportArgs, QuestionArgs};

/// Say what a study came to: the best setting, how sure that is, and the figures that show it.
///
/// The answer comes first, then the best setting by each metric, then the settings that beat the reference.
/// --export-html makes a page with figures that opens from a file, without a network.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub struct ReportArgs {
    /// The study: its folder, or its name below studies/.
    pub study: PathBuf,

    /// Whose energy counts: job-gpus, all-gpus, node [default: as when it was made].
    #[arg(long, value_name = "WHOSE", help_heading = "Answer")]
    pub energy_of: Option<EnergyOf>,

    #[command(flatten)]
    pub question: QuestionArgs,

    /// Average the objective along this axis over the others, and say which of its values is best:
    /// core-clock, power-cap, batch.
    #[arg(long, value_name = "AXIS", help_heading = "Answer")]
    pub by: Option<String>,

    /// With --by: over these axes alone; others are held as at the reference [default: all others].
    #[arg(
        long,
        value_name = "AXIS,...",
        value_delimiter = ',',
        requires = "by",
        help_heading = "Answer"
    )]
    pub over: Vec<String>,

    /// With --by: geometric (every combination counts by its ratio) or arithmetic.
    #[arg(
        long,
        value_name = "MEAN",
        default_value_t,
        requires = "by",
        help_heading = "Answer"
    )]
    pub mean: Mean,

    /// Runs to draw over time, by their numbers in `study show` [default: one of the reference, one of the choice].
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub run: Vec<u64>,

    #[command(flatten)]
    pub export: ExportArgs,

    #[command(flatten)]
    pub figures: FigureArgs,
}

/// Put studies side by side: settings in common, differences with significance, the best of each.
///
/// Of the same workload on several devices, or of several workloads on one; all are compared with the first.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct CompareArgs {
    /// The studies: their folders, or their names below studies/.
    #[arg(required = true, num_args = 2.., value_name = "STUDY")]
    pub studies: Vec<PathBuf>,

    /// Whose energy counts: job-gpus, all-gpus, node [default: as when each was made].
    #[arg(long, value_name = "WHOSE", help_heading = "Answer")]
    pub energy_of: Option<EnergyOf>,

    #[command(flatten)]
    pub question: QuestionArgs,

    #[command(flatten)]
    pub export: ExportArgs,

    #[command(flatten)]
    pub figures: FigureArgs,
}

/// Figures as files.
#[derive(Debug, Args)]
pub struct FigureArgs {
    /// Write each figure as an SVG file into a folder.
    #[arg(long, value_name = "FOLDER")]
    pub export_figures: Option<PathBuf>,

    /// With --export-figures: as PNG files too (needs a build with the feature png).
    #[arg(long, requires = "export_figures")]
    pub png: bool,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  sweetspot report resnet50-v100
  sweetspot report resnet50-v100 --objective energy --limit 'time<=+5%'
  sweetspot report resnet50-v100 --export-html report.html --export-figures figures --png
  sweetspot report vgg16-tesla_p100 --objective energy-per-item --by core-clock --over memory-clock,batch";

const COMPARE_EXAMPLES: &str = "\
Examples:
  sweetspot compare resnet50-v100 resnet50-quadro_rtx_6000
  sweetspot compare pascal maxwell --objective energy-per-item --export-html compare.html";
