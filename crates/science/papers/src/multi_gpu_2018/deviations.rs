//! Deviations from tables 4, 5, 7 and 8: seconds and joules of the forward and backward step of a batch.

use sweetspot_device::Settings;
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_sim::Variant;
use sweetspot_study::EnergyOf;

use super::tables::{StepCell, read_step_cells};
use crate::PapersError;
use crate::Profiles;
use crate::deviations::{Column, SimulatorDeviations, Table, Value};

/// The name of the study, which selects the workload profiles.
const STUDY: &str = "multi_gpu_2018";
/// The profile of the Titan X of the Pascal generation.
const PASCAL: &str = "titan_x_pascal";
/// The profile of the Titan X of the Maxwell generation.
const MAXWELL: &str = "titan_x_maxwell";

/// The number of iterations of a run, which is enough to warm up the GPU.
const ITERATIONS: u64 = 300;

/// The names of the GPUs of a table's cell, the measured GPU first; four GPUs are two of each kind.
fn gpu_names(cell: &StepCell) -> Vec<&str> {
    let other = if cell.gpu == PASCAL { MAXWELL } else { PASCAL };
    let own = cell.gpu.as_str();
    match cell.gpus {
        1 => vec![own],
        2 => vec![own; 2],
        _ => vec![own, own, other, other],
    }
}

/// The published and the simulated time, energy and power of one cell.
fn compare_cell(profiles: &Profiles, cell: &StepCell) -> Result<Vec<Value>, PapersError> {
    let name = format!("{}@{STUDY}", cell.network);
    let gpus = gpu_names(cell);
    let variant = Variant::default();
    let case = profiles.case(&gpus, Some(STUDY), &name, &variant, EnergyOf::JobGpus)?;
    let case = case.items(cell.batch * ITERATIONS);
    let ranks = case.ranks(Settings::default(), cell.batch, cell.gpus)?;
    // The part of the gradient exchange that does not overlap with computation counts as backward step, as in a
    // profiler.
    let is_in_step =
        |name: &str| name == cell.step || (cell.step == "backward" && name == "exchange");
    let phases = ranks[0]
        .phases
        .iter()
        .filter(|phase| is_in_step(&phase.name));
    let (time, energy) = phases.fold((Seconds::ZERO, Joules::ZERO), |(time, energy), phase| {
        (time + phase.time, energy + phase.energy)
    });
    let judged = cell.gpus == 1 && cell.is_consistent();
    let value = |published: f64, here: f64, tolerance: f64| Value {
        published,
        here: here / ITERATIONS as f64,
        tolerance: judged.then_some(tolerance),
        origin: None,
    };
    Ok(vec![
        value(cell.time.get() * 1e3, time.get() * 1e3, 0.10),
        value(cell.energy.get(), energy.get(), 0.15),
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
        free_parameters: profiles.parameters(STUDY).len(),
        values: judged.count(),
        held_out: Vec::new(),
        changed_profiles: Vec::new(),
        tables,
    })
}
