//! batch_sizer_2021: BatchSizer: batch sizes under a power cap.

mod deviations;
mod jobs;
mod reproduction;
pub mod tables;

pub(crate) use deviations::compare;
pub use jobs::{JobResult, ModeResult};
pub(crate) use reproduction::{PAPER, reproduce};
