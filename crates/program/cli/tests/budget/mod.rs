//! `sweetspot budget` on simulated hosts in real time.

mod bad_input;
mod common;
mod kept;
