//! Runs one command of the user, from its start to its exit.
//!
//! [`run_until_exit`] starts a command, passes signals on to it, reads its progress and waits for its exit.
//! `measure`, `run`, `sweep`, `tune` and `hold` all use it; what each does meanwhile is a [`RunHandler`].
//! Devices that are set while commands run belong to a [`Lease`].
//!
//! This crate promises one loop that waits, one rule for signals and grace periods, and one count of progress
//! ([`ProgressReader`]); every wait ends after a signal; a command that is ended takes all its descendants with it.
//! It leaves to others what is measured or set while the command runs.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod command;
mod error;
mod lease;
mod output;
mod pattern;
mod process;
mod progress;
mod run;
mod signals;

pub use command::{CommandSpec, OutputTarget};
pub use error::WorkloadError;
pub use lease::{ChangedCap, GuardProgram, Lease};
pub use pattern::{InvalidPattern, OutputReport, ProgressPattern};
pub use process::end_descendants;
pub use progress::{Progress, ProgressCounter, ProgressReader, Reporter, WorkloadEvent};
pub use run::{
    NoHandler, OnSignal, RunHandler, RunInProgress, RunLimits, RunOutcome, run_until_exit,
};
pub use signals::SignalSource;
pub use sweetspot_guard::CommandExit;
