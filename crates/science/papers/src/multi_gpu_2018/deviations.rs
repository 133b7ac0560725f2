//! Deviations from tables 4, 5, 7 and 8: seconds and joules of the forward and backward step of a batch.

use super::STUDY;
use super::jobs::{JobMeasurement, MAXWELL, PASCAL};
use super::tables::{StepCell, read_step_cells};
use crate::PapersError;
use crate::Profiles;
use crate::deviations::{Column, SimulatorDeviations, Table, Value};

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
    let value = |published: f64, here: f64, tolerance: f64| Value {
        published,
        here,
        tolerance: judged.then_some(tolerance),
        origin: None,
    };
    Ok(vec![
        value(cell.time.get() * 1e3, time * 1e3, 0.10),
        value(cell.energy.get(), energy, 0.15),
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
        tables[usize::from(cell.gpus > 1)].rows.push(row);
    }
    let judged = tables[0]
        .values()
        .filter(|(value, _)| value.tolerance.is_some());
    Ok(SimulatorDeviations {
        study: STUDY.to_owned(),
        free_parameters: profiles.count_fitted(STUDY, &[PASCAL, MAXWELL], &[STUDY]),
        values: judged.count(),
        held_out: Vec::new(),
        tables,
    })
}
