//! Deviations from tables 4, 5, 7 and 8: seconds, joules and watts of the forward and backward step of a batch.

use super::STUDY;
use super::jobs::{JobMeasurement, MAXWELL, PASCAL};
use super::origins::{Quantity, origin_of};
use super::summary::TOLERANCE;
use super::tables::{StepCell, read_step_cells};
use crate::PapersError;
use crate::Profiles;
use crate::deviations::{Column, HeldOut, IsWanted, SimulatorDeviations, Table, Value};
use crate::origin::ValueOrigin;

/// The consistent cells that the profiles were not fitted to.
const PREDICTED: &str = "2D-CNN, ResNetIm and ResNet on several GPUs (except the energy of ResNet's backward step on two)";
/// The titles of the tables of one GPU and of several.
const TITLES: [&str; 2] = [
    "one Titan X: a step of a batch; in brackets if the printed watts contradict joules and seconds",
    "two and four Titan X (the second pair is of the other kind): the same",
];

/// The published and the simulated time, energy and power of one cell.
fn compare_cell(profiles: &Profiles, cell: &StepCell) -> Result<Vec<Value>, PapersError> {
    let gpu = if cell.gpu == PASCAL { PASCAL } else { MAXWELL };
    let job = JobMeasurement::exact(profiles, (gpu, cell.network, cell.gpus, cell.batch))?;
    let step = job.map(|job| match cell.step.as_str() {
        "forward" => job.forward,
        _ => job.backward,
    });
    let (time, energy) = step.map_or((f64::NAN, f64::NAN), |step| (step.time, step.energy));
    let value = |published: f64, here: f64, of_one: f64, quantity| {
        let tolerance = if cell.gpus == 1 { of_one } else { TOLERANCE };
        Value {
            published,
            here,
            tolerance: cell.is_consistent().then_some(tolerance),
            origin: Some(origin_of(cell, quantity)),
        }
    };
    Ok(vec![
        value(cell.time.get() * 1e3, time * 1e3, 0.10, Quantity::Time),
        value(cell.energy.get(), energy, 0.15, Quantity::Energy),
        value(cell.power.get(), energy / time, 0.15, Quantity::Power),
    ])
}

/// The name of a cell's row. The number of GPUs ends it, so that no label contains another.
fn label_of(cell: &StepCell) -> String {
    let gpu = cell.gpu.trim_start_matches("titan_x_");
    let (network, step) = (cell.network, &cell.step);
    format!("{gpu} {network} {step} {} on {}", cell.batch, cell.gpus)
}

/// Compares the simulated steps with tables 4, 5, 7 and 8.
pub fn compare(
    profiles: &Profiles,
    is_wanted: IsWanted<'_>,
) -> Result<SimulatorDeviations, PapersError> {
    let mut tables = TITLES.map(|title| Table {
        title: title.to_owned(),
        columns: vec![
            Column::relative("ms", 0),
            Column::relative("J", 2),
            Column::relative("W", 0),
        ],
        rows: Vec::new(),
    });
    for cell in read_step_cells()? {
        let table = &mut tables[usize::from(cell.gpus > 1)];
        let label = label_of(&cell);
        if is_wanted(&table.title, &label) {
            table.rows.push((label, compare_cell(profiles, &cell)?));
        }
    }
    let has_origin = |value: &Value, origin| value.origin == Some(origin);
    let all = tables.iter().flat_map(Table::values);
    let fitted = all.filter(|(value, _)| has_origin(value, ValueOrigin::Fitted));
    // A cell that contradicts itself has no tolerance.
    let predicted =
        |value: &Value| value.tolerance.is_some() && has_origin(value, ValueOrigin::Predicted);
    Ok(SimulatorDeviations {
        study: STUDY.to_owned(),
        free_parameters: profiles.parameters(STUDY).len(),
        values: fitted.count(),
        by_hand: 0,
        held_out: vec![HeldOut {
            without: PREDICTED.to_owned(),
            tables: tables[1].clone().only(predicted),
        }],
        not_held_out: 0,
        changed_profiles: Vec::new(),
        tables: tables.into(),
    })
}
