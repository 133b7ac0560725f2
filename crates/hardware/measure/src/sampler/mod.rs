//! Reading devices beside a workload.

mod beside;
mod counter_plan;
mod poll_plan;
mod recorder;
mod threads;

pub use beside::Beside;
pub use recorder::{Recorder, Task};
pub use threads::{Recorded, Sampler, SamplerError, perform};
