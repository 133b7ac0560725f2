//! `sweetspot measure` on simulated GPUs.

mod answers;
mod common;
mod energy;
mod faults;
mod link;
mod runs;
mod samples;
mod windows;
