//! Studies and caps on a real Slurm, started for the tests.

mod bad_input;
mod cluster;
mod faults;
mod hooks;
mod records;
mod studies;
