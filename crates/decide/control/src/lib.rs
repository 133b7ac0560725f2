//! Controllers that act while a run is in progress: the tuner for training and the holder for inference.
//!
//! Both are state machines without I/O that take events with their times and return settings. The same controller
//! runs on the simulator in virtual time, on a recorded trace and on a real GPU.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod hold;
pub mod tune;
