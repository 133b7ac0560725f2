//! `sweetspot measure` on simulated GPUs.

#[path = "../common/host.rs"]
mod host;

mod answers;
mod common;
mod energy;
mod faults;
mod link;
mod runs;
mod samples;
mod windows;
