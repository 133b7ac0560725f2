//! Simulated GPUs in real time, shared by every process of a simulated host.
//!
//! A simulated host is a folder (`SWEETSPOT_SIM`) with the profiles of its GPUs and a file with the state of each.
//! There is no daemon and no thread: every access to a GPU advances it to the present moment, under a lock that the
//! kernel releases when the process that has it is killed. The new state replaces the older of two copies; therefore
//! one copy is always intact.
//!
//! Guarantees: no partly written state is read, no energy is lost, and the physics is the same as in virtual time.
//! NVML's functions are in the crate `nvml-sim`.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::print_stderr
    )
)]

mod error;
mod host;
mod job;
mod live;
mod remover;
mod sensors;
mod stand_in;
mod store;
mod temporary_host;
#[cfg(test)]
mod tests;
mod virtual_gpu;

pub use error::HostError;
pub use host::{ENVIRONMENT, Host, ProfileText, SharedGpu};
pub use job::{JobId, JobProgress};
pub use live::{LiveGpu, Throttle, WriteDenied};
pub use sensors::{LimitTimes, PowerSensor, Sample};
pub use stand_in::{
    Amount, FindWorkload, Finished, ServeLlmRequest, ServedLlm, Serving, StandInError,
    StandInRequest, run_llm_stand_in, run_stand_in,
};
pub use temporary_host::{CreateHostError, HostParts, TemporaryHost};
pub use virtual_gpu::VirtualGpu;
