//! `sweetspot hold` in real time, on simulated GPUs.

#[path = "../common/host.rs"]
mod host;

mod bad_input;
mod caps;
mod common;
mod kills;
mod knobs;
mod mishaps;
mod rim;
