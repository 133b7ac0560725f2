//! The flags, their help, and nothing else: a file for each command, and what they share.

mod fit;
mod hold;
mod measure;
mod network;
mod replay;
mod report;
mod reproduce;
mod run;
mod see;
mod shared;
mod simulate;
mod study;
mod sweep;
mod tune;

use clap::{Parser, Subcommand};
use tracing::level_filters::LevelFilter;

use crate::log::parse_level;

pub use fit::FitArgs;
pub use hold::{HoldArgs, HoldCommand, KnobName, ModeName, ObjectiveName, SensorName};
pub use measure::MeasureArgs;
pub use network::{By, NetworkArgs};
pub use replay::ReplayArgs;
pub use report::{CompareArgs, FigureArgs, ReportArgs};
pub use reproduce::ReproduceArgs;
pub use run::{GuardArgs, RunArgs};
pub use see::{DevicesArgs, DoctorArgs};
pub use simulate::{SimWorkloadArgs, SimulateArgs};
pub use study::{StudyArgs, StudyCommand, TaskArgs};
pub use sweep::SweepArgs;
pub use tune::TuneArgs;

/// Makes deep learning on GPUs cost less energy.
///
/// A GPU rarely needs all the power it may draw: a lower power cap can save a quarter of the energy for
/// some more time. Sweetspot finds the setting where that trade suits you.
#[derive(Debug, Parser)]
#[command(name = "sweetspot", version, max_term_width = 100)]
pub struct Cli {
    /// Write what happens to standard error, for a bug report: off, error, warn, info, debug, trace [default: off]
    /// (also SWEETSPOT_LOG=LEVEL).
    #[arg(long, global = true, value_name = "LEVEL", value_parser = parse_level, display_order = 900)]
    pub log: Option<LevelFilter>,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Sweep(Box<SweepArgs>),
    Simulate(SimulateArgs),
    Fit(FitArgs),
    Reproduce(ReproduceArgs),
    SimWorkload(SimWorkloadArgs),
    Measure(Box<MeasureArgs>),
    Run(Box<RunArgs>),
    Hold(Box<HoldArgs>),
    Tune(Box<TuneArgs>),
    Report(Box<ReportArgs>),
    Compare(Box<CompareArgs>),
    Replay(Box<ReplayArgs>),
    Study(StudyArgs),
    Task(TaskArgs),
    /// Put back what was left changed on a GPU, after a crash or a kill.
    Restore,
    Network(Box<NetworkArgs>),
    Devices(DevicesArgs),
    Doctor(DoctorArgs),
    #[command(hide = true)]
    Guard(GuardArgs),
}
