//! Of `sweep`.

use std::ffi::OsString;
use std::num::NonZeroUsize;

use clap::Args;
use sweetspot_decide::Objective;
use sweetspot_study::EnergyOf;

use super::shared::{ExportArgs, VariantArgs, whole_number};

/// Try every power cap, clock or number of GPUs, several times each, and say which is best.
#[derive(Debug, Args)]
#[command(after_help = SWEEP_EXAMPLES)]
pub struct SweepArgs {
    /// The simulated GPUs: NAME, NAME:N for several, more after commas; a name (see `simulate --list`) or
    /// your own profile file.
    #[arg(long, value_name = "GPU[:N],...")]
    pub simulate: Option<String>,

    /// What stands around the GPUs: power of the host, supplies, links between GPUs; its own GPUs are
    /// taken where --simulate names none.
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,

    /// The workload: NETWORK, NETWORK@STUDY, or your own profile file.
    #[arg(long, value_name = "NAME")]
    pub network: Option<String>,

    #[command(flatten)]
    pub variant: VariantArgs,

    /// Items in a batch [default: as in the study].
    #[arg(long, value_name = "N", value_parser = whole_number)]
    pub batch: Option<u64>,

    /// Items in a run [default: as in the study].
    #[arg(long, value_name = "N", value_parser = whole_number)]
    pub items: Option<u64>,

    /// Power caps to try: 150..300:5, 150,180,210, or all (steps of 5 W and both ends)
    /// [default: all, where no other axis is given].
    #[arg(long, value_name = "AXIS")]
    pub power_cap: Option<String>,

    /// Core clocks to lock: 510,652,802, 900..1350:150, or all.
    #[arg(long, value_name = "AXIS")]
    pub core_clock: Option<String>,

    /// Memory clocks to lock.
    #[arg(long, value_name = "AXIS")]
    pub memory_clock: Option<String>,

    /// Numbers of GPUs to use: 1,2,4,8 [default: all].
    #[arg(long, value_name = "LIST")]
    pub gpus: Option<String>,

    /// Whose energy counts: job-gpus, all-gpus (those that idle too), node (all that comes from the wall).
    #[arg(long, value_name = "WHOSE", default_value_t)]
    pub energy_of: EnergyOf,

    /// Runs of each configuration.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,

    /// Seed of everything random; the same seed gives the same study, to the bit.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// What the recommendation is for: energy, time, power, edp, ed2p, eds:K, gain-minus-loss,
    /// energy-per-item, items-per-joule, throughput.
    #[arg(long, value_name = "OBJ", default_value = "edp")]
    pub objective: Objective,

    /// Runs computed at a time; changes no result [default: one for each core].
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,

    #[command(flatten)]
    pub export: ExportArgs,

    /// Your own command, run on real GPUs.
    #[arg(last = true, value_name = "CMD")]
    pub cmd: Vec<OsString>,
}

const SWEEP_EXAMPLES: &str = "\
Examples:
  sweetspot sweep --simulate v100 --network resnet50
  sweetspot sweep --simulate quadro_rtx_6000 --network vgg19 --power-cap 120..200:10
  sweetspot sweep --simulate tesla_p100 --network vgg16 --infer --core-clock all
  sweetspot sweep --node node_power_capping_2023 --network xception --gpus 1,8 --energy-of node
  sweetspot sweep --simulate v100 --network resnet50 --export-json study.json --export-csv -";
