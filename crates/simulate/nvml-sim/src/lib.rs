//! NVML over the GPUs of a simulated host: the functions that public clients call, with the meaning,
//! the units and the error codes of NVIDIA's library.
//!
//! Promises: no thread, no lock that a fork could inherit held, no panic across the border. What a
//! generation does not have, and what is not simulated, answers `NOT_SUPPORTED`.
//! Left to others: the physics and the shared state (`sim-host`).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]
#![allow(unsafe_code)]
#![allow(non_snake_case)]
#![allow(clippy::missing_safety_doc)]

mod clocks;
mod energy;
mod identity;
mod lifecycle;
mod memory;
mod support;
mod unsupported;
