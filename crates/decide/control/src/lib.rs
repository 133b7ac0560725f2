//! What acts while a run goes on, as state machines without I/O: events with their times in, settings out.
//!
//! The same controller runs on the simulator in virtual time, on a recorded trace and on a real GPU.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod hold;
pub mod tune;
