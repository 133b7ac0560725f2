//! `simulate --fit`: a workload profile from a user's measured rows.
//!
//! The work of an item, the launches of an iteration and the switching power are moved until the simulator
//! gives the measured speed and power; the GPU stays as its profile has it. What the rows cannot tell is
//! assumed and said to be.

mod error;
mod model;
mod rows;
mod text;

pub use error::{FitError, RowsError};
pub use rows::{MeasuredRow, RowChoice, measured_rows};
pub use text::workload_text;

pub(crate) use model::phases;
pub(crate) use text::{five_digits, lines, list, quoted, rounded, write_workload};

use sweetspot_device::Settings;
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{GpuProfile, Mode, WorkloadProfile};
use sweetspot_stats::fit;

use model::{Assumed, Key, Model};

/// What is to be fitted.
#[derive(Clone, Debug)]
pub struct FitRequest {
    /// The GPU's name or path, as the profile is to name it.
    pub gpu_name: String,
    /// The GPU.
    pub gpu: GpuProfile,
    /// The network's name.
    pub network: String,
    /// What was done with it.
    pub mode: Mode,
    /// What was measured: runs of this network on one such GPU.
    pub rows: Vec<MeasuredRow>,
}

/// A measured row and what the fitted profile makes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedRow {
    /// As measured.
    pub measured: MeasuredRow,
    /// Time of an iteration, simulated without noise.
    pub iteration: Seconds,
    /// Mean power, simulated without noise.
    pub power: Watts,
}

impl FittedRow {
    /// How far the throughput is off.
    pub fn throughput_off(&self) -> Ratio {
        self.measured.iteration / self.iteration - Ratio::new(1.0)
    }

    /// How far the mean power is off.
    pub fn power_off(&self) -> Ratio {
        self.power / self.measured.power - Ratio::new(1.0)
    }
}

/// A workload profile and how it was come by.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedWorkload {
    /// As it will be read from its file: its numbers are rounded already.
    pub profile: WorkloadProfile,
    /// Parameters that were free.
    pub parameters: usize,
    /// Measured values that they were to meet: two for each row.
    pub values: usize,
    /// Every row, in the order given.
    pub rows: Vec<FittedRow>,
}

const MOST_STEPS: usize = 60;

/// An optional parameter must bring the sum of squares down to this part, or it is left out.
const WORTHWHILE: f64 = 0.7;

/// Fits a workload profile to measured rows.
pub fn fit_workload(request: &FitRequest) -> Result<FittedWorkload, FitError> {
    let model = Model::new(request)?;
    let (keys, optional) = model.keys()?;
    let (mut best, mut cost) = model_fit(&model, &keys)?;
    let mut used = keys.clone();
    for key in optional {
        let more: Vec<Key> = used.iter().copied().chain([key]).collect();
        let (trial, at_trial) = model_fit(&model, &more)?;
        if at_trial < WORTHWHILE * cost {
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

/// The best of several starts, and its sum of squares.
fn model_fit(model: &Model, keys: &[Key]) -> Result<(Assumed, f64), FitError> {
    let mut best: Option<(Assumed, f64)> = None;
    for start in model.starts(keys) {
        let from: Vec<f64> = keys.iter().map(|key| start.get(*key)).collect();
        let bounds = model.bounds(keys);
        let residuals = |at: &[f64]| model.residuals(&start.with(keys, at), keys);
        let found = fit(residuals, &from, &bounds, MOST_STEPS);
        let cost: f64 = found.residuals.iter().map(|r| r * r).sum();
        let is_better = best.as_ref().is_none_or(|(_, least)| cost < *least);
        if cost.is_finite() && is_better {
            best = Some((start.with(keys, &found.parameters), cost));
        }
    }
    best.ok_or(FitError::NoResult)
}

/// What a profile makes of a row: time of an iteration and mean power.
pub fn predict(
    request: &FitRequest,
    profile: &WorkloadProfile,
    row: &MeasuredRow,
) -> Result<FittedRow, FitError> {
    let (iteration, power) = model::simulate(request, profile, row)?;
    Ok(FittedRow {
        measured: row.clone(),
        iteration,
        power,
    })
}

/// Different settings among rows.
fn different_settings(rows: &[MeasuredRow]) -> usize {
    let mut seen: Vec<Settings> = Vec::new();
    for row in rows {
        if !seen.contains(&row.settings) {
            seen.push(row.settings);
        }
    }
    seen.len()
}

/// Different batch sizes among rows.
fn different_batches(rows: &[MeasuredRow]) -> usize {
    let mut seen: Vec<u64> = rows.iter().map(|row| row.batch).collect();
    seen.sort_unstable();
    seen.dedup();
    seen.len()
}
