//! The published studies: their tables, the simulator's deviations from them, and their reproductions.
//!
//! Each paper has a folder with its tables as printed (`tables.rs`), the deviations of the simulator from them
//! (`deviations.rs`, for `simulate --errors`) and its reproduction (`reproduction.rs`, for `reproduce PAPER`). The
//! folder `h200` has measurements in place of a paper. Published values are only compared with: no result is
//! computed from them.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod batch_sizer_2021;
pub mod dvfs_2019;
pub mod h200;
pub mod multi_gpu_2018;
pub mod node_power_capping_2023;
pub mod power_capping_2022;

mod deviations;
mod error;
mod figure;
mod fingerprint;
mod forms;
mod held_out;
mod layer_work;
mod on_gpu;
mod origin;
mod parameter;
mod profiles;
mod reproduction;
mod row;
mod simulated_runs;
mod tables;

pub use deviations::{
    Column, DeviationKind, HeldOut, IsWanted, SimulatorDeviations, Table, Value, compare_rows,
    compare_with, deviations, studies,
};
pub use error::PapersError;
pub use figure::{FigureNotDrawn, Panel, PaperCurve, PaperFigure};
pub use fingerprint::ProfileFingerprint;
pub use forms::{FORMS, StudyForm, published_study};
pub use held_out::{StoredFit, deviations_of, is_held_out, stored_fits};
pub use on_gpu::{
    OwnBest, OwnChange, OwnComparison, OwnOrigin, OwnPlan, OwnPlanError, OwnRow, PlanOptions,
    compare_own, plan_for,
};
pub use origin::{OriginCounts, ValueOrigin};
pub use parameter::{Parameter, ParameterProfile, ParameterValue};
pub use profiles::Profiles;
pub use reproduction::{FitSummary, FormSummary, Reproduction, papers, reproduce};
pub use row::{Conclusion, CountedTolerance, Judgement, Label, ReproducedRow, ValueKind};
pub use simulated_runs::SweepRunner;
pub use tables::PublishedError;
