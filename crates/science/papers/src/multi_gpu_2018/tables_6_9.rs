//! Reproduces tables 6 and 9 of multi_gpu_2018: whole trainings, and the best settings among them.

use super::jobs::{JobMeasurement, MAXWELL, PASCAL, energy_of_all, find};
use super::tables::{Iterations, StepCell, WholeTraining, read_iterations, read_whole_trainings};
use crate::PapersError;
use crate::origin::ValueOrigin;
use crate::row::{Judgement, Label, ReproducedRow, Rows, ValueKind};

/// The time of a whole training.
const TIME: ValueKind = ValueKind::relative("time_s", "training [ks]", 1e-3, 1);
/// The energy of a whole training.
const ENERGY: ValueKind = ValueKind::relative("energy_j", "training [MJ]", 1e-6, 2);
/// The energy-delay product of a whole training.
const EDP: ValueKind = ValueKind::relative("edp_js", "training [MJ ks]", 1e-9, 1);
/// A best setting may be worse than the bold one by this share of the printed value.
const MAX_LOSS: f64 = 0.04;

/// A whole training: the printed row and the simulated time, energy and energy-delay product.
struct Training {
    printed: WholeTraining,
    here: Option<[f64; 3]>,
    /// Whether all cells of tables 4, 5, 7 and 8 that the row follows from are consistent.
    is_consistent: bool,
}

impl Training {
    /// The printed time, energy and energy-delay product, in SI units.
    fn printed_values(&self) -> Option<[f64; 3]> {
        let row = &self.printed;
        Some([
            1e3 * row.kiloseconds?,
            1e6 * row.megajoules?,
            1e9 * row.edp?,
        ])
    }
}

/// Computes the whole trainings of both tables.
fn trainings(
    measured: &[JobMeasurement],
    cells: &[StepCell],
) -> Result<Vec<Training>, PapersError> {
    let iterations: Vec<Iterations> = read_iterations()?;
    let make = |printed: WholeTraining| {
        let (gpu, gpus, batch) = (&printed.measured_gpu, printed.gpus, printed.batch_size);
        let own: Vec<&StepCell> = cells
            .iter()
            .filter(|cell| {
                let is_measured = gpus == 4 || cell.gpu == *gpu;
                is_measured
                    && cell.printed_network == printed.network
                    && cell.gpus == gpus
                    && cell.batch == batch
            })
            .collect();
        let of_table_3 = iterations
            .iter()
            .find(|known| known.network == printed.network && known.batch_size == batch);
        let network = cells
            .iter()
            .find(|cell| cell.printed_network == printed.network);
        let here = of_table_3.zip(network).and_then(|(known, cell)| {
            let count = known.iterations as f64;
            let time = count * find(measured, gpu, cell.network, gpus, batch)?.time();
            let energy = count * energy_of_all(measured, gpu, cell.network, gpus, batch)?;
            Some([time, energy, time * energy])
        });
        Training {
            here,
            is_consistent: !own.is_empty() && own.iter().all(|cell| cell.is_consistent()),
            printed,
        }
    };
    Ok(read_whole_trainings()?.into_iter().map(make).collect())
}

/// The rows of tables 6 and 9.
pub fn rows(
    measured: &[JobMeasurement],
    cells: &[StepCell],
    tolerance: f64,
) -> Result<Vec<ReproducedRow>, PapersError> {
    let trainings = trainings(measured, cells)?;
    let mut all = Vec::new();
    for training in &trainings {
        let row = &training.printed;
        let mut rows = Rows::new(if row.measured_gpu == PASCAL { "6" } else { "9" })
            .with_origin(ValueOrigin::Derived);
        let labels: [(&'static str, Label); 4] = [
            ("gpu", row.measured_gpu.as_str().into()),
            ("network", row.network.as_str().into()),
            ("batch", row.batch_size.into()),
            ("gpus", row.gpus.into()),
        ];
        let here = |index: usize| training.here.map(|here| here[index]);
        let Some(printed) = training.printed_values() else {
            *rows.add(&labels, TIME, None, here(0), Judgement::Shown) =
                Some("empty in the table: the batch did not fit into memory".to_owned());
            all.extend(rows.rows);
            continue;
        };
        let judgement = match training.is_consistent {
            true => Judgement::Counted(tolerance),
            false => Judgement::Shown,
        };
        for (index, kind) in [TIME, ENERGY, EDP].into_iter().enumerate() {
            let note = rows.add(&labels, kind, Some(printed[index]), here(index), judgement);
            if !training.is_consistent {
                *note = Some("no tolerance: follows from cells that contradict themselves".into());
            }
        }
        all.extend(rows.rows);
    }
    Ok(all)
}

/// How many of the best settings of tables 6 and 9 are found.
pub struct BestSettings {
    /// The number of best settings: by time, energy and energy-delay product, for each network and table.
    pub of: usize,
    /// The settings that are worse than the bold ones, in words.
    pub missed: Vec<String>,
}

/// Compares the best simulated setting of each network with the bold one, by the printed numbers. `exact` has no noise,
/// because batch sizes that differ by less than the noise would be in random order.
pub fn best_settings(
    exact: &[JobMeasurement],
    cells: &[StepCell],
) -> Result<BestSettings, PapersError> {
    let trainings = trainings(exact, cells)?;
    let mut best = BestSettings {
        of: 0,
        missed: Vec::new(),
    };
    for gpu in [PASCAL, MAXWELL] {
        let mut networks: Vec<&str> = Vec::new();
        for training in &trainings {
            let name = training.printed.network.as_str();
            if !networks.contains(&name) {
                networks.push(name);
            }
        }
        for network in networks {
            let own: Vec<&Training> = trainings
                .iter()
                .filter(|one| one.printed.measured_gpu == gpu && one.printed.network == network)
                .filter(|one| one.printed_values().is_some() && one.here.is_some())
                .collect();
            for (index, name) in ["time", "energy", "EDP"].into_iter().enumerate() {
                let printed = |one: &&&Training| one.printed_values().map_or(0.0, |all| all[index]);
                let here = |one: &&&Training| one.here.map_or(0.0, |all| all[index]);
                let lowest = |value: &dyn Fn(&&&Training) -> f64| {
                    let mut all: Vec<&&Training> = own.iter().collect();
                    all.sort_by(|a, b| value(a).total_cmp(&value(b)));
                    all.first().copied()
                };
                let (Some(bold), Some(chosen)) = (lowest(&printed), lowest(&here)) else {
                    continue;
                };
                best.of += 1;
                let loss = printed(&chosen) / printed(&bold) - 1.0;
                if loss > MAX_LOSS {
                    let setting = |one: &Training| {
                        let gpus = match one.printed.gpus {
                            1 => "1 GPU".to_owned(),
                            count => format!("{count} GPUs"),
                        };
                        format!("{gpus} with batch {}", one.printed.batch_size)
                    };
                    best.missed.push(format!(
                        "{network} in the table of {gpu}, by {name}: {} instead of {}, {:.0} % worse",
                        setting(chosen),
                        setting(bold),
                        100.0 * loss
                    ));
                }
            }
        }
    }
    Ok(best)
}
