//! What a command does, from a typed request to a typed answer.
//!
//! The program turns flags into requests and answers into text; everything in between is here, so that
//! a service or another program can do the same.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod hold;
pub mod measure;
pub mod published;

mod csv_text;
mod deviations;
mod devices;
mod doctor;
mod error;
mod fit;
mod fit_study;
mod host;
mod network;
mod observer;
mod replay;
mod reproduce;
mod run;
mod sim_workload;
mod simulated_host;
mod sweep;
mod tune;
mod virtual_time;

pub use deviations::{
    Column, Off, Profiles, StudyDeviations, Table, Value, deviations, deviations_of, studies,
};
pub use devices::{DeviceReport, SensorReport, devices};
pub use doctor::{Check, Verdict, doctor};
pub use error::SessionError;
pub use fit::{
    FitError, FitRequest, FittedRow, FittedWorkload, MeasuredRow, RowChoice, RowsError,
    fit_workload, measured_rows, predict, workload_text,
};
pub use fit_study::{
    Errors, FitErrors, FittedChoice, FittedPoint, FittedStudy, MeasuredPoint, MeasuredStudy,
    StudyFitError, fit_study, measured_study, profile_text,
};
pub use host::{guard_folder, left_changed, restore_all, serve_as_guard};
pub use network::{InStudy, NetworkUseError, OnGpu, StudyRow, in_study, load_network, on_gpu};
pub use observer::{Observer, Status};
pub use replay::{
    EnergyColumn, PriorChoice, RecordColumns, RecordedCurve, RecordedKnob, Replay, ReplayError,
    ReplayRequest, ReplayedCurve, recorded_curves, replay, studied_curve,
};
pub use reproduce::{
    Conclusion, Counted, JobResult, Judgement, Kind, Label, ModeResult, ReproducedRow,
    Reproduction, Runs, papers, reproduce,
};
pub use run::{MeasuredRunResult, RunRequest, RunResult, run, run_measured};
pub use sim_workload::{
    Amount, Arrivals, BadArrivals, Finished, Serving, SimWorkloadRequest, sim_workload,
};
pub use simulated_host::{HostParts, SimulatedHost};
pub use sweep::{Conduct, Estimate, Lessons, Sweep, SweepProgress, all_went_well, sweep};
pub use tune::{
    ChoiceError, ChoiceStore, SimulatedJob, TuneKnob, TuneKnobError, TuneRequest, TunedCommand,
    TunedJob, tune, tune_simulated,
};
pub use virtual_time::Setup;
