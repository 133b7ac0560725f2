//! Of `reproduce`.

use clap::Args;

use super::shared::TextExportArgs;

/// Run a published study again on simulated GPUs, beside what was printed.
///
/// Every value of its tables, how far off it is here, and whether its conclusions hold. Exit code 1 if a
/// tolerance is missed.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct ReproduceArgs {
    /// power-capping-2022, dvfs-2019, multi-gpu-2018, batch-sizer-2021 or node-power-capping-2023.
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Only the tolerances and the conclusions.
    #[arg(long)]
    pub summary: bool,

    /// Seed of what is random in the runs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    pub export: TextExportArgs,
}

const EXAMPLES: &str = "\
Examples:
  sweetspot reproduce power-capping-2022
  sweetspot reproduce dvfs-2019 --summary
  sweetspot reproduce multi-gpu-2018 --export-csv rows.csv";
