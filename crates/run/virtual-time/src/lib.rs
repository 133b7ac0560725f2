//! Sweep, tune and hold on simulated GPUs in virtual time: hours of GPU work are computed in a second.
//!
//! [`SimulatedJob`] is a workload on simulated GPUs. [`SimulatedSweep`] makes the runs of a study with it,
//! [`tune()`] lets a tuner act on a [`JobSequence`], and [`SimulatedServer`] lets a holder act on a program that
//! serves requests. Tuner and holder are the same as for real GPUs.
//!
//! The same request and seed give the same bits, on any number of threads. The crate `session` runs real commands on
//! devices; the crate `decide` chooses among the results.

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

pub mod budget;
pub mod hold;
pub mod serving;
pub mod serving_hold;

mod error;
mod job;
mod job_results;
mod sweep;
mod tune;

pub use error::SimulationError;
pub use hold::SimulatedServer;
pub use job::{JobGpu, JobSpec, SimulatedJob};
pub use sweep::{PreparedSweep, RunCounts, SimulatedSweep, sweep};
pub use tune::{JobSequence, tune};
