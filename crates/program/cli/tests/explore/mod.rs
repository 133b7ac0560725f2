//! `sweetspot sweep` with commands on simulated hosts in real time, stored studies, and bad input.

mod added_runs;
mod bad_input;
mod commands;
mod common;
mod failures;
mod kills;
mod studies;
mod without_axes;
