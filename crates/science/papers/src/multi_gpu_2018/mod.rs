//! multi_gpu_2018: Energy tuning of CNNs on several GPUs.

mod deviations;
mod reproduction;
mod table_1;
mod table_11;
mod table_checks;
pub mod tables;

pub(crate) use deviations::compare;
pub(crate) use reproduction::{PAPER, reproduce};
