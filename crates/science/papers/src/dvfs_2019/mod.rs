//! dvfs_2019: GPU DVFS for training and inference.

mod appendix_claims;
mod boards;
mod deviations;
mod figures;
mod reproduction;
mod structure;
pub mod tables;
mod text_claims;

pub use crate::layer_work::FrameworkConstants;
pub use structure::StudyConstants;

pub(crate) use boards::{BOARDS, RUNS};
pub(crate) use deviations::{STUDY, compare};
pub(crate) use reproduction::{PAPER, SOURCE, reproduce};
pub(crate) use structure::derive_workloads;
