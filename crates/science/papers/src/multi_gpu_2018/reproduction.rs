//! Reproduces tables 3 to 9, 12 and 13: a step of a batch on one, two and four GPUs, three runs each.

use sweetspot_study::{AxisText, BATCH_PARAMETER, Definition, Point, Study};

use super::table_checks::{contradiction, why_unjudged};
use super::tables::{
    StepCell, read_accuracies, read_average_efficiencies, read_efficiencies, read_iterations,
    read_network_costs, read_step_cells, read_whole_trainings,
};
use super::{table_1, table_11};
use crate::PapersError;
use crate::Reproduction;
use crate::row::{Conclusion, Judgement, Label, ReproducedRow, Rows, ValueKind};
use crate::simulated_runs::SweepRunner;

/// The name of the paper on the command line.
pub const PAPER: &str = "multi-gpu-2018";
/// The citation of the paper.
const SOURCE: &str = "F. M. Castro, N. Guil, M. J. Marín-Jiménez, J. Pérez-Serrano, M. Ujaldón: Energy-based Tuning of Convolutional Neural Networks on Multi-GPUs. 2018";
/// The name of the study, which selects the workload profiles.
const STUDY: &str = "multi_gpu_2018";
/// The profile of the Titan X of the Pascal generation.
pub const PASCAL: &str = "titan_x_pascal";
/// The profile of the Titan X of the Maxwell generation.
pub const MAXWELL: &str = "titan_x_maxwell";

/// The number of items of a run, which gives enough iterations to warm up the GPU.
const ITEMS: u64 = 300 * 128;

/// The time of one step of a batch.
const TIME: ValueKind = ValueKind::relative("time_s", "time of a batch [ms]", 1e3, 0);
/// The energy of one step of a batch.
const ENERGY: ValueKind = ValueKind::relative("energy_j", "energy of a batch [J]", 1.0, 2);
/// The mean power during one step of a batch.
const POWER: ValueKind = ValueKind::relative("power_w", "power [W]", 1.0, 0);
/// The time of a whole training.
const WHOLE_TIME: ValueKind = ValueKind::relative("time_s", "training [ks]", 1e-3, 1);
/// The energy of a whole training.
const WHOLE_ENERGY: ValueKind = ValueKind::relative("energy_j", "training [MJ]", 1e-6, 2);
/// The energy-delay product of a whole training.
const WHOLE_EDP: ValueKind = ValueKind::relative("edp_js", "training [MJ ks]", 1e-9, 1);
/// The iterations of a whole training.
const ITERATIONS: ValueKind = ValueKind::relative("iterations", "iterations", 1.0, 0);
/// The accuracy after a whole training.
const ACCURACY: ValueKind = ValueKind::difference("accuracy", "accuracy [%]", 100.0, 1);

/// The numbers of GPUs that the paper used.
const GPU_COUNTS: [u64; 3] = [1, 2, 4];
/// The four networks of the paper, by their names in the profiles.
const NETWORKS: [&str; 4] = ["resnet_gait", "cnn2d", "caffenet", "resnet_im"];

/// The time in seconds and the energy in joules of one step (forward or backward) of a batch.
#[derive(Clone, Copy)]
pub struct Step {
    pub time: f64,
    pub energy: f64,
}

/// The time and energy of a batch's forward and backward step, for the first GPU of a simulated job.
pub struct JobMeasurement {
    pub gpu: &'static str,
    pub network: &'static str,
    pub gpus: u64,
    pub batch: u64,
    pub forward: Step,
    pub backward: Step,
}

impl JobMeasurement {
    /// Reads the results of a sweep's point; `None` if it has no successful run.
    fn from_point(
        point: &Point,
        gpu: &'static str,
        network: &'static str,
        gpus: u64,
    ) -> Option<Self> {
        let outcome = point.outcome()?;
        let batch = point.configuration.batch()?;
        let iterations = outcome.items? / batch as f64;
        let phases = point.phases();
        let all: f64 = phases.iter().map(|phase| phase.energy.get()).sum();
        // A study has the energy of each phase over all GPUs and of each GPU over all phases. The first GPU's share
        // of a phase is taken to be its share of all phases, which is exact for GPUs of one kind.
        let (_, own) = point.energy_by_device().into_iter().next()?;
        let whole = outcome.energy?.get();
        let step = |names: &[&str]| {
            let own_phases = phases
                .iter()
                .filter(|phase| names.contains(&phase.name.as_str()));
            let (time, energy) = own_phases.fold((0.0, 0.0), |(time, energy), phase| {
                (time + phase.time.get(), energy + phase.energy.get())
            });
            Step {
                time: time / iterations,
                energy: energy / iterations * own.get() / whole,
            }
        };
        (all > 0.0 && whole > 0.0).then(|| Self {
            gpu,
            network,
            gpus,
            batch,
            forward: step(&["forward"]),
            // The part of the gradient exchange that does not overlap with computation counts as backward step.
            backward: step(&["backward", "exchange"]),
        })
    }

    /// The time of both steps in seconds.
    pub fn time(&self) -> f64 {
        self.forward.time + self.backward.time
    }

    /// The energy of both steps in joules.
    pub fn energy(&self) -> f64 {
        self.forward.energy + self.backward.energy
    }
}

/// Sweeps the batch sizes of a network on a number of GPUs.
fn sweep(
    runner: &mut SweepRunner,
    gpu: &'static str,
    network: &str,
    gpus: u64,
) -> Result<Study, PapersError> {
    let other = if gpu == PASCAL { MAXWELL } else { PASCAL };
    let selector = match gpus {
        1 | 2 => format!("{gpu}:{gpus}"),
        _ => format!("{gpu}:2,{other}:2"),
    };
    let batches = AxisText("64,128,256".to_owned());
    runner.sweep(Definition {
        node: Some(STUDY.to_owned()),
        items: Some(ITEMS),
        repeat: Some(3),
        axis: [(BATCH_PARAMETER.to_owned(), batches)].into(),
        ..Definition::simulated(&selector, &format!("{network}@{STUDY}"))
    })
}

/// Runs all sweeps of the paper and compares the results with its tables.
pub fn reproduce(runner: &mut SweepRunner) -> Result<Reproduction, PapersError> {
    let cells = read_step_cells()?;
    let mut measured: Vec<JobMeasurement> = Vec::new();
    for gpu in [PASCAL, MAXWELL] {
        for network in NETWORKS {
            for gpus in GPU_COUNTS {
                let study = sweep(runner, gpu, network, gpus)?;
                let points = study.points.iter();
                measured.extend(
                    points
                        .filter_map(|point| JobMeasurement::from_point(point, gpu, network, gpus)),
                );
            }
        }
    }
    let counts = read_network_costs()?;
    let mut rows = table_1::rows(&counts)?;
    rows.extend(table_3()?);
    for cell in &cells {
        rows.extend(step_rows(cell, &measured));
    }
    rows.extend(training_rows(&measured, &cells)?);
    let efficiency = table_11::EfficiencyTable {
        counts: &counts,
        cells: &cells,
        measured: &measured,
    };
    rows.extend(efficiency.rows(&read_efficiencies()?, &read_average_efficiencies()?));
    rows.extend(accuracy()?);
    Ok(Reproduction {
        fit: None,
        paper: PAPER,
        source: SOURCE,
        runs: runner.clone(),
        conclusions: conclusions(&measured),
        rows,
        counted_tolerances: Vec::new(),
        not_reproduced: vec![
            "tables 12 and 13 (accuracy) need real training: a simulated GPU does not learn"
                .to_owned(),
        ],
        jobs: Vec::new(),
    })
}

/// Finds the measurement of a job; `None` if the job did not fit into memory.
pub fn find<'a>(
    measured: &'a [JobMeasurement],
    gpu: &str,
    network: &str,
    gpus: u64,
    batch: u64,
) -> Option<&'a JobMeasurement> {
    measured.iter().find(|one| {
        one.gpu == gpu && one.network == network && one.gpus == gpus && one.batch == batch
    })
}

/// The rows of table 3: iterations are epochs times items divided by the batch size. Tables 6 and 9 use the printed
/// numbers.
fn table_3() -> Result<Vec<ReproducedRow>, PapersError> {
    let mut rows = Rows::new("3");
    let printed = read_iterations()?;
    for row in &printed {
        let labels: [(&'static str, Label); 2] = [
            ("network", row.network.as_str().into()),
            ("batch", row.batch_size.into()),
        ];
        let first = printed.iter().find(|other| other.network == row.network);
        let here = first.map(|first| {
            let items = (first.iterations * first.batch_size) as f64 / first.epochs as f64;
            items * row.epochs as f64 / row.batch_size as f64
        });
        let printed = Some(row.iterations as f64);
        rows.add(&labels, ITERATIONS, printed, here, Judgement::Shown);
    }
    Ok(rows.rows)
}

/// The rows of tables 4, 5, 7 and 8 for one cell: time, energy and power of a step.
fn step_rows(cell: &StepCell, measured: &[JobMeasurement]) -> Vec<ReproducedRow> {
    let tables = match cell.gpu.as_str() {
        PASCAL => ("4", "5"),
        _ => ("7", "8"),
    };
    let labels: [(&'static str, Label); 5] = [
        ("gpu", cell.gpu.as_str().into()),
        ("network", cell.printed_network.as_str().into()),
        ("step", cell.step.as_str().into()),
        ("batch", cell.batch.into()),
        ("gpus", cell.gpus.into()),
    ];
    let here = find(measured, &cell.gpu, cell.network, cell.gpus, cell.batch);
    let here = here.map(|here| match cell.step.as_str() {
        "forward" => here.forward,
        _ => here.backward,
    });
    let judged = |tolerance| match cell.gpus == 1 && cell.is_consistent() {
        true => Judgement::Each(tolerance),
        false => Judgement::Shown,
    };
    let mut times = Rows::new(tables.0);
    let time = here.map(|here| here.time);
    let printed = Some(cell.time.get());
    *times.add(&labels, TIME, printed, time, judged(0.10)) = why_unjudged(cell);
    let mut energies = Rows::new(tables.1);
    let energy = here.map(|here| here.energy);
    let printed = Some(cell.energy.get());
    *energies.add(&labels, ENERGY, printed, energy, judged(0.15)) = why_unjudged(cell);
    let power = here.map(|here| here.energy / here.time);
    let printed = Some(cell.power.get());
    *energies.add(&labels, POWER, printed, power, Judgement::Shown) = contradiction(cell);
    times.rows.extend(energies.rows);
    times.rows
}

/// The rows of tables 6 and 9: time, energy and energy-delay product of whole trainings on all GPUs.
fn training_rows(
    measured: &[JobMeasurement],
    cells: &[StepCell],
) -> Result<Vec<ReproducedRow>, PapersError> {
    let iterations = read_iterations()?;
    let mut all = Vec::new();
    for row in read_whole_trainings()? {
        let mut rows = Rows::new(if row.measured_gpu == PASCAL { "6" } else { "9" });
        let labels: [(&'static str, Label); 4] = [
            ("gpu", row.measured_gpu.as_str().into()),
            ("network", row.network.as_str().into()),
            ("batch", row.batch_size.into()),
            ("gpus", row.gpus.into()),
        ];
        let times = iterations
            .iter()
            .find(|known| known.network == row.network && known.batch_size == row.batch_size);
        let network = cells
            .iter()
            .find(|cell| cell.printed_network == row.network)
            .map(|cell| cell.network);
        let here = times.zip(network).and_then(|(times, network)| {
            let gpu = &row.measured_gpu;
            let one = find(measured, gpu, network, row.gpus, row.batch_size)?;
            let count = times.iterations as f64;
            Some((count * one.time(), count * one.energy() * row.gpus as f64))
        });
        let (time, energy) = (here.map(|here| here.0), here.map(|here| here.1));
        let edp = here.map(|(time, energy)| time * energy);
        let shown = Judgement::Shown;
        let printed = |value: Option<f64>, scale: f64| value.map(|value| value * scale);
        if row.kiloseconds.is_none() {
            *rows.add(&labels, WHOLE_TIME, None, time, shown) =
                Some("empty in the table: the batch did not fit into memory".to_owned());
        } else {
            rows.add(
                &labels,
                WHOLE_TIME,
                printed(row.kiloseconds, 1e3),
                time,
                shown,
            );
            rows.add(
                &labels,
                WHOLE_ENERGY,
                printed(row.megajoules, 1e6),
                energy,
                shown,
            );
            rows.add(&labels, WHOLE_EDP, printed(row.edp, 1e9), edp, shown);
        }
        all.extend(rows.rows);
    }
    Ok(all)
}

/// The rows of tables 12 and 13 (accuracy), which a simulator cannot reproduce.
fn accuracy() -> Result<Vec<ReproducedRow>, PapersError> {
    let mut all = Vec::new();
    for row in read_accuracies()? {
        let mut rows = Rows::new(if row.measure == "average" { "12" } else { "13" });
        let labels: [(&'static str, Label); 4] = [
            ("network", row.network.as_str().into()),
            ("dataset", row.dataset.as_str().into()),
            ("batch", row.batch_size.into()),
            ("measure", row.measure.as_str().into()),
        ];
        let printed = Some(row.accuracy_pct / 100.0);
        *rows.add(&labels, ACCURACY, printed, None, Judgement::Shown) =
            Some("needs real training".to_owned());
        all.extend(rows.rows);
    }
    Ok(all)
}

/// The paper's conclusions, and whether the reproduction confirms them.
fn conclusions(measured: &[JobMeasurement]) -> Vec<Conclusion> {
    let mut faster = Vec::new();
    let mut leaner = Vec::new();
    for network in ["cnn2d", "caffenet", "resnet_im"] {
        for batch in [64, 128, 256] {
            let of = |gpu| find(measured, gpu, network, 1, batch);
            if let (Some(pascal), Some(maxwell)) = (of(PASCAL), of(MAXWELL)) {
                faster.push(1.0 - pascal.time() / maxwell.time());
                leaner.push(1.0 - pascal.energy() / maxwell.energy());
            }
        }
    }
    let range = |values: &[f64]| {
        let (low, high) = crate::row::range_of(values.iter().copied());
        format!("{:.0} to {:.0} %", 100.0 * low, 100.0 * high)
    };
    let mut larger = Vec::new();
    for network in NETWORKS {
        for gpu in [PASCAL, MAXWELL] {
            let of = |batch| find(measured, gpu, network, 1, batch);
            let largest = [256, 128].into_iter().find_map(of);
            if let (Some(small), Some(large)) = (of(64), largest) {
                let per_item = |one: &JobMeasurement| one.energy() / one.batch as f64;
                larger.push(per_item(large) / per_item(small));
            }
        }
    }
    let mut spread = Vec::new();
    for network in NETWORKS {
        let of = |gpus| find(measured, PASCAL, network, gpus, 128);
        if let (Some(one), Some(four)) = (of(1), of(4)) {
            spread.push((network, 4.0 * four.energy() / one.energy()));
        }
    }
    vec![
        Conclusion::new(
            "one Pascal needs 30 to 40 % less time and energy than one Maxwell for 2D-CNN, CaffeNet and ResNetIm",
            faster.iter().chain(&leaner).all(|gain| *gain > 0.0),
            format!(
                "{} less time, {} less energy",
                range(&faster),
                range(&leaner)
            ),
        ),
        Conclusion::new(
            "on one GPU the largest batch costs no more energy for an item than the smallest",
            larger.iter().all(|ratio| *ratio < 1.05),
            format!("{} of the energy with a batch of 64", range(&larger)),
        ),
        Conclusion::new(
            "four GPUs take more energy for a batch than one",
            spread.iter().all(|(_, ratio)| *ratio > 1.0),
            spread
                .iter()
                .map(|(network, ratio)| format!("{network} {ratio:.1} times"))
                .collect::<Vec<_>>()
                .join(", "),
        ),
    ]
}
