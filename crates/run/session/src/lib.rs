//! The verbs of the program (measure, run, sweep, tune, hold, devices, doctor), from a typed request to a typed result.
//!
//! The command-line program turns flags into requests, and results into text. Everything in between is in this crate,
//! for other programs to use too.

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

pub mod budget;
pub mod calibrate;
pub mod hold;
pub mod measure;
pub mod slurm_job;

mod devices;
mod doctor;
mod error;
mod host;
mod nearest_settings;
mod network;
mod node;
mod observer;
mod prediction;
mod run;
mod settings_watch;
mod study_origin;
mod sweep;
mod tune;

pub use devices::{
    DeviceReport, HostPartReport, ListedDevices, SensorReport, devices, gpu_descriptors, gpu_ids,
    host_parts,
};
pub use doctor::{Check, CheckResult, doctor};
pub use error::SessionError;
pub use host::{
    DevicesError, GuardWriter, SettingsAccess, StartAsRoot, restore_all, serve_as_guard,
    service_socket, unrestored_devices,
};
pub use measure::MeasureError;
pub use network::{
    GpuBounds, NetworkUseError, StudyEfficiency, StudyRow, bounds_on_gpu, efficiency_in_study,
};
pub use node::{MeterReport, MeterState, NodeEnergy, meter_reports};
pub use observer::{Observer, Status, TuneStatus};
pub use prediction::{BestSetting, GpuPrediction, default_precision, predict_on_gpu};
pub use run::{MeasuredRunResult, RunRequest, RunResult, run, run_measured};
pub use study_origin::StudyOrigin;
pub use sweep::{
    JobCounts, Placement, QueueSummary, SlurmError, SlurmOptions, SlurmRequest, Sweep, SweepError,
    SweepOptions, SweepTime, TimeLeft, UnplannedJobs, all_runs_succeeded, answer_probe,
    has_submitted_jobs, reject_queued_jobs, test_without_gpus, was_started_on_slurm,
};
pub use tune::{
    ChoiceError, ChoiceQuery, ChoiceStore, TuneError, TunedCommand, TunedCommandResult, tune,
};
