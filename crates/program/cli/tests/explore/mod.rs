//! `sweep` of a command on simulated hosts, in real time; studies on disk; what is typed wrong.

mod bad_input;
mod kills;
mod mishaps;
mod real;
mod studies;
mod tools;
