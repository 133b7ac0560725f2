//! Reads devices while a workload runs.

mod auxiliary;
mod counter_plan;
mod limit_readings;
mod poll_plan;
mod recorder;
mod tasks;
mod threads;

pub use auxiliary::AuxiliaryReadings;
pub use limit_readings::{LimitReadings, WindowLimits};
pub use recorder::{Recorder, Task};
pub use tasks::perform_task;
pub use threads::{DeviceRecording, Sampler, SamplerError};
