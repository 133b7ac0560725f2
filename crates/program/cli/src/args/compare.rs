//! The flags of `compare`.

use std::path::PathBuf;

use clap::Args;
use sweetspot_study::EnergyOf;

use super::figures::FigureArgs;
use super::shared::{CriteriaArgs, ExportArgs};

/// The examples in the help text of `compare`.
const COMPARE_EXAMPLES: &str = "\
Examples:
  sweetspot compare resnet50-v100 resnet50-quadro_rtx_6000
  sweetspot compare pascal maxwell --objective energy-per-item --export-html compare.html";

/// Compare studies: their differences and best settings.
///
/// Compares studies of one workload on several devices, or of several workloads on one device, with the first one:
/// common settings, differences with their significance, and the best setting of each.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct CompareArgs {
    /// The studies: their folders, or their names below studies/.
    #[arg(required = true, num_args = 2.., value_name = "STUDY")]
    pub studies: Vec<PathBuf>,

    /// Which energy to use: job-gpus, all-gpus, node [default: as in each study].
    #[arg(long, value_name = "WHOSE", help_heading = "Recommendation")]
    pub energy_of: Option<EnergyOf>,

    #[command(flatten)]
    pub criteria: CriteriaArgs,

    #[command(flatten)]
    pub export: ExportArgs,

    #[command(flatten)]
    pub figures: FigureArgs,
}
