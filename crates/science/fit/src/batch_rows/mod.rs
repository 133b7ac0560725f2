//! Fits a workload profile to a user's measured rows.
//!
//! The work of an item, the launch time of an iteration and the switching power are fitted until the simulator
//! predicts the measured speed and power; the GPU's profile is not changed. Values that the rows cannot determine are
//! assumed, and a comment in the profile names them.

mod error;
mod model;
mod rows;
mod simulate;
mod text;

pub use error::{FitError, RowsError};
pub use rows::{MeasuredRow, RowChoice, measured_rows};
pub use text::workload_text;

pub(crate) use model::default_phases;
pub(crate) use text::{list, quoted, round_to_five_digits, rounded, write_keys, write_workload};

use sweetspot_device::Settings;
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{GpuProfile, Mode, WorkloadProfile};
use sweetspot_stats::fit;

use model::{Model, Parameter, ParameterValues};

/// The GPU, the network and the measured rows of a fit.
#[derive(Clone, Debug)]
pub struct FitRequest {
    /// The GPU's name or path, which the fitted profile will contain.
    pub gpu_name: String,
    /// The profile of the GPU on which the rows were measured.
    pub gpu: GpuProfile,
    /// The name of the network that was measured.
    pub network: String,
    /// Whether the network was trained or used for inference.
    pub mode: Mode,
    /// The measured rows: runs of this network on one such GPU.
    pub rows: Vec<MeasuredRow>,
}

/// A measured row and what the fitted profile predicts for it.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedRow {
    /// The measured row.
    pub measured: MeasuredRow,
    /// The time of an iteration that the fitted profile predicts, without noise.
    pub iteration: Seconds,
    /// The mean power that the fitted profile predicts, without noise.
    pub power: Watts,
}

impl FittedRow {
    /// The relative deviation of the predicted from the measured throughput; positive if the prediction is higher.
    pub fn throughput_deviation(&self) -> Ratio {
        self.measured.iteration / self.iteration - Ratio::new(1.0)
    }

    /// The relative deviation of the predicted from the measured mean power.
    pub fn power_deviation(&self) -> Ratio {
        self.power / self.measured.power - Ratio::new(1.0)
    }
}

/// A fitted workload profile and its predictions for the measured rows.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedWorkload {
    /// The profile, with its numbers rounded as in its file.
    pub profile: WorkloadProfile,
    /// The number of fitted parameters.
    pub parameters: usize,
    /// The number of measured values that the parameters were fitted to: speed and power of each row.
    pub values: usize,
    /// Every measured row with its prediction, in the order of the request.
    pub rows: Vec<FittedRow>,
}

/// The maximum number of iterations of the least-squares optimiser.
const MAX_STEPS: usize = 60;

/// The share of the sum of squares below which an optional parameter must bring it to be used.
const REQUIRED_IMPROVEMENT: f64 = 0.7;

/// Fits a workload profile to measured rows.
pub fn fit_workload(request: &FitRequest) -> Result<FittedWorkload, FitError> {
    let model = Model::new(request)?;
    let (parameters, optional) = model.parameters()?;
    let (mut best, mut cost) = fit_from_starts(&model, &parameters)?;
    let mut used = parameters.clone();
    for parameter in optional {
        let more: Vec<Parameter> = used.iter().copied().chain([parameter]).collect();
        let (trial, at_trial) = fit_from_starts(&model, &more)?;
        if at_trial < REQUIRED_IMPROVEMENT * cost {
            (best, cost, used) = (trial, at_trial, more);
        }
    }
    let profile = model.profile(&best, &used).map(text::rounded)?;
    let rows = request
        .rows
        .iter()
        .map(|row| predict(request, &profile, row))
        .collect::<Result<_, _>>()?;
    Ok(FittedWorkload {
        profile,
        parameters: used.len(),
        values: 2 * request.rows.len(),
        rows,
    })
}

/// Fits from several starting values, and returns the best values and their sum of squares.
fn fit_from_starts(
    model: &Model,
    parameters: &[Parameter],
) -> Result<(ParameterValues, f64), FitError> {
    let mut best: Option<(ParameterValues, f64)> = None;
    for start in model.starts(parameters) {
        let from: Vec<f64> = parameters
            .iter()
            .map(|parameter| start.get(*parameter))
            .collect();
        let bounds = model.bounds(parameters);
        let residuals =
            |at: &[f64]| model.residuals(&start.with_values(parameters, at), parameters);
        let found = fit(residuals, &from, &bounds, MAX_STEPS);
        let cost: f64 = found.residuals.iter().map(|r| r * r).sum();
        let is_better = best.as_ref().is_none_or(|(_, least)| cost < *least);
        if cost.is_finite() && is_better {
            best = Some((start.with_values(parameters, &found.parameters), cost));
        }
    }
    best.ok_or(FitError::NoResult)
}

/// Predicts the time of an iteration and the mean power of a row from a profile.
pub fn predict(
    request: &FitRequest,
    profile: &WorkloadProfile,
    row: &MeasuredRow,
) -> Result<FittedRow, FitError> {
    let (iteration, power) = simulate::simulate(request, profile, row)?;
    Ok(FittedRow {
        measured: row.clone(),
        iteration,
        power,
    })
}

/// The number of different settings among rows.
fn count_settings(rows: &[MeasuredRow]) -> usize {
    let mut seen: Vec<Settings> = Vec::new();
    for row in rows {
        if !seen.contains(&row.settings) {
            seen.push(row.settings);
        }
    }
    seen.len()
}

/// The number of different batch sizes among rows.
fn count_batches(rows: &[MeasuredRow]) -> usize {
    let mut seen: Vec<u64> = rows.iter().map(|row| row.batch).collect();
    seen.sort_unstable();
    seen.dedup();
    seen.len()
}
