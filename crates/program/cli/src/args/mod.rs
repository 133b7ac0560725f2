//! Flags and their help texts: one file for each command, and `shared` for flags that several commands have.

mod budget;
mod calibrate;
mod compare;
mod counter;
mod devices;
mod doctor;
#[cfg(test)]
mod documented;
mod figures;
mod fit;
#[cfg(feature = "generate")]
mod generate;
mod groups;
mod hold;
mod measure;
mod meters;
mod metrics;
mod network;
#[cfg(test)]
mod reference;
mod replay;
mod report;
mod reproduce;
mod run;
mod serve;
mod shared;
mod simulate;
mod slurm;
mod study;
mod sweep;
mod tune;

use clap::{Parser, Subcommand};
use tracing::level_filters::LevelFilter;

use crate::log::parse_level;
use crate::terminal::ColorWhen;

pub use budget::{BudgetArgs, BudgetCommand, BudgetOf};
pub use calibrate::CalibrateArgs;
pub use compare::CompareArgs;
pub use counter::{CounterArgs, CounterCommand, MonitorArgs, TopArgs};
pub use devices::DevicesArgs;
pub use doctor::DoctorArgs;
pub use figures::{FigureArgs, FigureFormat};
pub use fit::FitArgs;
#[cfg(feature = "generate")]
pub use generate::{GenerateArgs, GenerateCommand};
pub use groups::parse;
pub use hold::{HoldArgs, HoldCommand, KnobName, ModeName, ObjectiveName, SensorName};
pub use measure::MeasureArgs;
pub use network::{NetworkArgs, RowGrouping};
pub use replay::ReplayArgs;
pub use report::ReportArgs;
pub use reproduce::ReproduceArgs;
pub use run::{GuardArgs, RunArgs};
pub use serve::{PolicyArgs, PolicyCommand, RootGuardArgs, ServeArgs};
pub use shared::{AsRootArg, CriteriaArgs, MAX_TABLE_BYTES, PreferArgs, SudoArgs, parse_network};
pub use simulate::{SimWorkloadArgs, SimulateArgs};
pub use slurm::{
    ExecutorName, SlurmArgs, SlurmChoiceArgs, SlurmCommand, SlurmHookArgs, SlurmSweepArgs,
};
pub use study::{StudyArgs, StudyCommand, TaskArgs};
pub use sweep::SweepArgs;
pub use tune::TuneArgs;

/// The version with the commit that the program is built from, if the build script knows it: `0.1.0 (abc1234)`.
const VERSION: &str = env!("SWEETSPOT_VERSION");

/// Measure and lower the energy that deep learning needs on GPUs.
///
/// A GPU rarely needs all the power it may draw: a lower power cap can save a
/// quarter of the energy if a job may take somewhat longer. Sweetspot finds the
/// setting with the trade-off that suits you.
#[derive(Debug, Parser)]
#[command(name = "sweetspot", version = VERSION, max_term_width = 100, verbatim_doc_comment)]
pub struct Cli {
    /// Write a log to standard error, for bug reports: off, error, warn, info, debug, trace [default: off] (also
    /// SWEETSPOT_LOG=LEVEL).
    #[arg(long, global = true, value_name = "LEVEL", value_parser = parse_level, display_order = 900)]
    pub log: Option<LevelFilter>,

    /// Use colours: auto (on a terminal, unless NO_COLOR is set), always or never [default: auto].
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        hide_possible_values = true,
        display_order = 901
    )]
    pub color: Option<ColorWhen>,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Sweep(Box<SweepArgs>),
    Simulate(SimulateArgs),
    Fit(FitArgs),
    Reproduce(Box<ReproduceArgs>),
    SimWorkload(SimWorkloadArgs),
    Measure(Box<MeasureArgs>),
    Calibrate(Box<CalibrateArgs>),
    Run(Box<RunArgs>),
    Hold(Box<HoldArgs>),
    Budget(Box<BudgetArgs>),
    Tune(Box<TuneArgs>),
    Report(Box<ReportArgs>),
    Compare(Box<CompareArgs>),
    Replay(Box<ReplayArgs>),
    Study(StudyArgs),
    Task(TaskArgs),
    /// Restore GPU settings that a crash or a kill left changed.
    Restore,
    Network(Box<NetworkArgs>),
    Devices(DevicesArgs),
    Doctor(DoctorArgs),
    Serve(ServeArgs),
    Policy(PolicyArgs),
    Slurm(SlurmArgs),
    Counter(CounterArgs),
    Top(TopArgs),
    #[command(hide = true)]
    Monitor(MonitorArgs),
    #[command(hide = true)]
    Guard(GuardArgs),
    #[command(hide = true)]
    RootGuard(RootGuardArgs),
    #[cfg(feature = "generate")]
    #[command(hide = true)]
    Generate(GenerateArgs),
}
