//! multi_gpu_2018: Energy tuning of CNNs on several GPUs.

mod deviations;
mod figures;
mod jobs;
mod origins;
mod reproduction;
mod summary;
mod table_1;
mod table_10;
mod table_11;
mod table_checks;
pub mod tables;
mod tables_6_9;

/// The name of the study, which selects the profiles of its workloads and of its node.
const STUDY: &str = "multi_gpu_2018";

pub(crate) use deviations::compare;
pub(crate) use jobs::{BATCHES, GPU_COUNTS, ITEMS, MAXWELL, NETWORKS, PASCAL};
pub(crate) use reproduction::{PAPER, SOURCE, reproduce};
pub(crate) use tables::read_whole_trainings;
