//! The mathematics: pure functions of readings and times, without I/O, threads or clocks.

mod aliasing;
mod counter_steps;
mod energy;
mod estimator;
mod filter;
mod fit_process;
mod integrate;
pub mod meter;
mod methods;
mod observations;
mod phases;
mod power_process;
mod readings;
mod update_schedule;
mod window_ends;

pub use counter_steps::{CounterChange, CounterStep, CounterSteps};
pub use energy::{Check, CheckedEnergy, Energy, EnergyError, Note};
pub use estimator::{EnergyEstimator, ReadingsFit};
pub use integrate::{Integral, find_holes};
pub use phases::{
    Attribution, AttributionError, PhaseEnergy, PhaseRecord, PhaseSpan, PhaseTime, Timeline,
};
pub use readings::{
    CounterReading, Gap, GapReason, PolledPower, PowerSample, Response, SensorModel, Span, Trace,
    WindowSensor,
};
pub use update_schedule::{UpdateSchedule, update_period};
