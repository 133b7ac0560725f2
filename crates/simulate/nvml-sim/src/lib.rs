//! NVML for the GPUs of a simulated host: the functions that public clients call, with the meaning, the units and the
//! error codes of NVIDIA's library.
//!
//! The library has no thread, holds no lock that a fork could inherit, and lets no panic reach the client. Functions that
//! a generation does not have, or that are not simulated, return `NOT_SUPPORTED`. The crate `sim-host` has the physics
//! and the shared state.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]
#![allow(unsafe_code)]
#![allow(non_snake_case)]
#![allow(clippy::missing_safety_doc)]

mod clock_offsets;
mod clocks;
mod energy;
mod gpm;
mod identity;
mod lifecycle;
mod memory;
mod support;
mod unsupported;
