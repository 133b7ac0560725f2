//! batch_sizer_2021: BatchSizer: batch sizes under a power cap.

mod controller;
mod deviations;
mod figures;
mod job_conclusions;
mod jobs;
mod reproduction;
pub mod tables;

pub use controller::Controller;
pub(crate) use deviations::{HOST_TIMES, STUDY, compare, workloads};
pub use jobs::{JobResult, ModeResult};
pub(crate) use reproduction::{PAPER, reproduce};
