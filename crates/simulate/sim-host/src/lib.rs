//! Simulated GPUs in real time, shared by every process of a simulated host.
//!
//! A simulated host is a folder (`SWEETSPOT_SIM`): the profiles of its GPUs, and a file with the state of
//! each. There is no daemon and no thread: whoever looks at a GPU brings it up to the present moment,
//! under a lock that the kernel frees when its holder is killed, and writes the older of two copies, so
//! that the other is whole whatever happens.
//!
//! Promises: no torn state, energy conserved, the same physics as in virtual time.
//! Left to others: NVML's functions (`nvml-sim`).

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod advance;
mod alone;
mod error;
mod host;
mod job;
mod sensors;
mod stand_in;
mod state;
mod store;
mod temporary_host;
#[cfg(test)]
mod tests;

pub use alone::LoneGpu;
pub use error::HostError;
pub use host::{ENVIRONMENT, Host, SharedGpu, Spec};
pub use job::{JobId, JobProgress};
pub use sensors::{PowerSensor, Sample};
pub use stand_in::{Amount, Finished, Serving, StandInError, StandInRequest, run_stand_in};
pub use state::{Live, Throttle, WriteDenied};
pub use temporary_host::{CreateHostError, HostParts, TemporaryHost};
