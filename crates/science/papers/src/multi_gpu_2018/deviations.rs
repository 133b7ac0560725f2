//! Deviations from tables 4, 5, 7 and 8: seconds and joules of the forward and backward step of a batch.

use super::STUDY;
use super::jobs::{JobMeasurement, MAXWELL, PASCAL};
use super::origins::{Quantity, origin_of};
use super::tables::{StepCell, read_step_cells};
use crate::PapersError;
use crate::Profiles;
use crate::deviations::{Column, HeldOut, SimulatorDeviations, Table, Value};
use crate::origin::ValueOrigin;

/// The consistent cells that the profiles were not fitted to.
const PREDICTED: &str = "2D-CNN, ResNetIm and ResNet on several GPUs (except the energy of ResNet's backward step on two)";

/// The published and the simulated time and energy of one cell.
fn compare_cell(profiles: &Profiles, cell: &StepCell) -> Result<Vec<Value>, PapersError> {
    let gpu = if cell.gpu == PASCAL { PASCAL } else { MAXWELL };
    let job = JobMeasurement::exact(profiles, (gpu, cell.network, cell.gpus, cell.batch))?;
    let step = job.map(|job| match cell.step.as_str() {
        "forward" => job.forward,
        _ => job.backward,
    });
    let (time, energy) = step.map_or((f64::NAN, f64::NAN), |step| (step.time, step.energy));
    let judged = cell.gpus == 1 && cell.is_consistent();
    let value = |published: f64, here: f64, tolerance: f64, quantity| Value {
        published,
        here,
        tolerance: judged.then_some(tolerance),
        origin: Some(origin_of(cell, quantity)),
    };
    Ok(vec![
        value(cell.time.get() * 1e3, time * 1e3, 0.10, Quantity::Time),
        value(cell.energy.get(), energy, 0.15, Quantity::Energy),
    ])
}

/// Compares the simulated steps with tables 4, 5, 7 and 8.
pub fn compare(profiles: &Profiles) -> Result<SimulatorDeviations, PapersError> {
    let mut tables: Vec<Table> = [
        "one Titan X: a step of a batch; in brackets if the printed watts contradict joules and seconds",
        "two and four Titan X (the second pair is of the other kind): computed, without a tolerance",
    ]
    .into_iter()
    .map(|title| Table {
        title: title.to_owned(),
        columns: vec![Column::relative("ms", 0), Column::relative("J", 2)],
        rows: Vec::new(),
    })
    .collect();
    let mut predicted = Table {
        title: "tables 4, 5, 7 and 8".to_owned(),
        columns: tables[0].columns.clone(),
        rows: Vec::new(),
    };
    let mut fitted = 0;
    for cell in read_step_cells()? {
        let count = match cell.gpus {
            1 => String::new(),
            count => format!(" on {count}"),
        };
        let label = format!(
            "{} {} {} {}{count}",
            cell.gpu.trim_start_matches("titan_x_"),
            cell.network,
            cell.step,
            cell.batch
        );
        let row = (label, compare_cell(profiles, &cell)?);
        if cell.is_consistent() {
            let (label, values) = &row;
            let (used, others): (Vec<Value>, Vec<Value>) = values
                .iter()
                .partition(|value| value.origin == Some(ValueOrigin::Fitted));
            fitted += used.len();
            if !others.is_empty() {
                predicted.rows.push((label.clone(), others));
            }
        }
        tables[usize::from(cell.gpus > 1)].rows.push(row);
    }
    Ok(SimulatorDeviations {
        study: STUDY.to_owned(),
        free_parameters: profiles.parameters(STUDY).len(),
        // Cells that contradict themselves do not count, though some of their values were used.
        values: fitted,
        held_out: vec![HeldOut {
            without: PREDICTED.to_owned(),
            tables: vec![predicted],
        }],
        not_held_out: 0,
        changed_profiles: Vec::new(),
        tables,
    })
}
