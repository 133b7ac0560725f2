//! dvfs_2019: GPU DVFS for training and inference.

mod boards;
mod deviations;
mod reproduction;
pub mod tables;
mod text_claims;

pub(crate) use deviations::compare;
pub(crate) use reproduction::{PAPER, reproduce};
