//! Controllers that change GPU settings while a workload runs: [`tune`] finds the best setting of a training job,
//! [`hold`] keeps the power of inference below a cap, and [`budget`] divides a power budget among GPUs.
//!
//! [`limit`] decides from counters what limits a load, and so which setting works.
//!
//! The controllers are state machines without I/O: they take events with their times and return the settings to apply.
//! The same code runs on the simulator in virtual time, on a recorded trace and on a real GPU.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod budget;
pub mod hold;
pub mod limit;
mod reading_gaps;
pub mod slo;
pub mod tune;

pub use reading_gaps::{MAX_READING_GAP, ReadingGaps};
