//! `sweetspot hold` in real time, on simulated GPUs.

mod bad_input;
mod caps;
mod common;
mod kills;
mod knobs;
mod mishaps;
mod rim;
