//! Runs one command of the user, from its start to its exit.
//!
//! [`run_until_exit`] starts a command, passes signals on to it, reads its progress and waits for its exit.
//! `measure`, `run`, `sweep`, `tune` and `hold` all use it; what each does meanwhile is a [`RunHandler`].
//! Devices that are set while commands run belong to a [`Lease`].
//!
//! All verbs share one wait loop, one rule for signals and grace periods, and one way to count progress
//! ([`ProgressReader`]). A signal ends every wait. When a command is ended, all its descendants are ended too. What is
//! measured or set while the command runs is left to the callers.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::print_stderr
    )
)]

mod attached;
mod command;
mod counter;
mod error;
mod lease;
mod metrics;
mod output;
mod pattern;
mod probe;
mod process;
mod progress;
mod recognition;
mod run;
mod signals;
mod source;
mod status_line;
mod streams;
mod terminal;

pub use command::{CommandSpec, OutputTarget};
pub use counter::ProgressCounter;
pub use error::WorkloadError;
pub use lease::{GuardProgram, Lease, LostSettings};
pub use metrics::{MetricsEvent, MetricsSource, ServingReport};
pub use pattern::{InvalidPattern, OutputReport, ProgressPattern};
pub use probe::ProbeTimes;
pub use process::end_descendants;
pub use progress::{Progress, ProgressReader, Reporter, WorkloadEvent};
pub use recognition::{Format, RecognisedFormat};
pub use run::{
    NoHandler, OnSignal, RunHandler, RunInProgress, RunLimits, RunOutcome, run_until_exit,
};
pub use signals::SignalSource;
pub use source::ProgressSource;
pub use status_line::{clear_status, show_status};
pub use sweetspot_guard::CommandExit;
