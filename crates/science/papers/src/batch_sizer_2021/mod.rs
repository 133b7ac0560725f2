//! batch_sizer_2021: BatchSizer: batch sizes under a power cap.

mod controller;
mod deviations;
mod figures;
mod job_conclusions;
mod jobs;
mod one_host_time;
mod reproduction;
pub mod tables;

pub use controller::Controller;
pub(crate) use deviations::{HOST_TIMES, STUDY, compare, workloads};
pub use jobs::{JobResult, ModeResult};
pub(crate) use one_host_time::compare_with_one_host_time;
pub use one_host_time::{HostTime, ONE_HOST_TIME};
pub(crate) use reproduction::{PAPER, reproduce};
