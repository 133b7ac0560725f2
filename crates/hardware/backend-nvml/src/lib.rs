//! NVIDIA GPUs through NVML.
//!
//! Promises: capabilities are probed once, when a device is opened; what the driver does not support is an
//! error of that name, never zero; samples of the driver's buffer come on the machine's monotonic clock.
//! Left to others: who may write (`guard`), how readings become joules.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod detect;
mod error;
mod raw;
mod read;
mod write;

pub use detect::{Nvml, NvmlGpu};
