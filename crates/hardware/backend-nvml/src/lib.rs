//! NVIDIA GPUs through NVML.
//!
//! Promises: capabilities are detected once, when a device is opened; an unsupported reading or setting is an
//! error, never zero; samples of the driver's buffer have times on the machine's monotonic clock.
//! Left to others: permission to write (`guard`), computing energy from readings (`measure`).

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod capabilities;
mod detect;
mod error;
mod limits;
mod lost;
mod memory_clock;
mod raw;
mod read;
mod write;

pub use detect::{Nvml, NvmlGpu};
