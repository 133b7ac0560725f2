//! `sweetspot hold` in real time, on simulated GPUs.

mod bad_input;
mod caps;
mod common;
mod edge_cases;
mod failures;
mod kills;
mod knobs;
mod several;
