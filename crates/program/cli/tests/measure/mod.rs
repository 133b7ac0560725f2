//! `sweetspot measure` on simulated GPUs.

mod command_line;
mod common;
mod energy;
mod faults;
pub mod limits;
mod link;
mod runs;
mod samples;
mod windows;
