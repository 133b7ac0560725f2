//! Fits profiles of simulated GPUs and workloads to measurements, and replays strategies on recorded curves.
//!
//! [`fit_workload`] fits a workload to measured rows of batch sizes (`sweetspot fit ROWS.csv`); [`fit_study`] fits a GPU
//! and a workload to a study (`fit STUDY`); [`replay()`] runs search strategies against recorded measurements.
//!
//! The physics that is fitted is in `sim`, the text for people in `report`.

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
    ReplayRequest, ReplayedCurve, curve_of_study, read_curves, replay,
};
pub use study::{
    Errors, FitErrors, FittedChoice, FittedPoint, FittedStudy, MeasuredPoint, MeasuredStudy,
    StudyFitError, fit_study, measured_study, profile_text,
};
