//! `sweetspot hold` in real time, on simulated GPUs.

mod bad_input;
mod caps;
mod common;
mod edge_cases;
mod kills;
mod knobs;
mod mishaps;
