//! The flags of `reproduce`.

use clap::Args;

use super::figures::FigureArgs;
use super::shared::{ProfilesArgs, TextExportArgs};

/// Reproduce a published study and compare it with the paper.
///
/// Runs the study on simulated GPUs. Shows every value of the paper's tables, how far the simulated value is from it,
/// and whether the paper's conclusions hold. The exit code is 1 if a value is outside its tolerance or a conclusion does
/// not hold.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct ReproduceArgs {
    /// The study: power-capping-2022, dvfs-2019, multi-gpu-2018, batch-sizer-2021 or node-power-capping-2023.
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Show only how many values are within their tolerance, and which conclusions hold.
    #[arg(long)]
    pub summary: bool,

    /// Seed of the random numbers of the runs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    pub profiles: ProfilesArgs,

    #[command(flatten)]
    pub export: TextExportArgs,

    #[command(flatten)]
    pub figures: FigureArgs,
}

/// The examples in the help text of `reproduce`.
const EXAMPLES: &str = "\
Examples:
  sweetspot reproduce power-capping-2022
  sweetspot reproduce dvfs-2019 --summary
  sweetspot reproduce multi-gpu-2018 --export-csv rows.csv
  sweetspot reproduce power-capping-2022 --export-figures figures --figure-format svg,pdf
  sweetspot reproduce node-power-capping-2023 --profiles my-profiles";
