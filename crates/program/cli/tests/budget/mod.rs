//! `sweetspot budget` on simulated hosts in real time.

mod bad_input;
mod common;
mod kept;
mod other_commands;
mod without_data;
