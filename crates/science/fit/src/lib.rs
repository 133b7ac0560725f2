//! Profiles of simulated GPUs and workloads from measurements, and strategies on recorded curves.
//!
//! [`fit_workload`] fits a workload to measured rows of batch sizes (`simulate --fit`); [`fit_study`] fits a GPU
//! and a workload to a study (`fit STUDY`); [`replay`] runs search strategies against recorded measurements.
//!
//! Left to others: the physics that is fitted (`sim`), text for people (`report`).

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod batch_rows;
mod csv_columns;
mod replay;
mod study;

pub use batch_rows::{
    FitError, FitRequest, FittedRow, FittedWorkload, MeasuredRow, RowChoice, RowsError,
    fit_workload, measured_rows, predict, workload_text,
};
pub use replay::{
    EnergyColumn, PriorChoice, RecordColumns, RecordedCurve, RecordedKnob, Replay, ReplayError,
    ReplayRequest, ReplayedCurve, recorded_curves, replay, studied_curve,
};
pub use study::{
    Errors, FitErrors, FittedChoice, FittedPoint, FittedStudy, MeasuredPoint, MeasuredStudy,
    StudyFitError, fit_study, measured_study, profile_text,
};
