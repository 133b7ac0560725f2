//! Reproduces the tables of multi_gpu_2018: a step of a batch on one, two and four GPUs, three runs each, and what
//! follows from it.

use super::figures::{NOT_DRAWN, figures};
use super::jobs::{JobMeasurement, MAXWELL, NETWORKS, PASCAL, exact_jobs, find, run_jobs};
use super::origins::{Quantity, origin_of};
use super::summary::{TOLERANCE, best_approach, derived_tables, deviations};
use super::table_checks::{contradiction, why_unjudged};
use super::tables::{
    StepCell, read_accuracies, read_average_efficiencies, read_efficiencies, read_iterations,
    read_network_costs, read_step_cells,
};
use super::{table_1, table_10, table_11, tables_6_9};
use crate::PapersError;
use crate::Reproduction;
use crate::origin::ValueOrigin;
use crate::profiles::Profiles;
use crate::row::{
    Conclusion, CountedTolerance, Judgement, Label, ReproducedRow, Rows, ValueKind, is_range_near,
    range_of,
};
use crate::simulated_runs::SweepRunner;

/// The name of the paper on the command line.
pub const PAPER: &str = "multi-gpu-2018";
/// The citation of the paper.
pub const SOURCE: &str = "F. M. Castro, N. Guil, M. J. Marín-Jiménez, J. Pérez-Serrano, M. Ujaldón: Energy-based Tuning of Convolutional Neural Networks on Multi-GPUs. 2018";

/// The time of one step of a batch.
const TIME: ValueKind = ValueKind::relative("time_s", "time of a batch [ms]", 1e3, 0);
/// The energy of one step of a batch.
const ENERGY: ValueKind = ValueKind::relative("energy_j", "energy of a batch [J]", 1.0, 2);
/// The mean power during one step of a batch.
const POWER: ValueKind = ValueKind::relative("power_w", "power [W]", 1.0, 0);
/// The iterations of a whole training.
const ITERATIONS: ValueKind = ValueKind::relative("iterations", "iterations", 1.0, 0);
/// The accuracy after a whole training.
const ACCURACY: ValueKind = ValueKind::difference("accuracy", "accuracy [%]", 100.0, 1);

/// The tolerance of both ends of a range that the text states in tens of per cent, as a fraction.
const TENS_TOLERANCE: f64 = 0.05;
/// The largest ratio that counts as no more energy, because of noise.
const NO_MORE: f64 = 1.01;

/// Runs all sweeps of the paper and compares the results with its tables.
pub fn reproduce(runner: &mut SweepRunner) -> Result<Reproduction, PapersError> {
    let cells = read_step_cells()?;
    let measured = run_jobs(runner)?;
    let counts = read_network_costs()?;
    let mut rows = table_1::rows(&counts)?;
    rows.extend(table_3()?);
    for cell in &cells {
        rows.extend(step_rows(cell, &measured));
    }
    rows.extend(tables_6_9::rows(&measured, &cells, TOLERANCE)?);
    rows.extend(table_10::rows(&measured, &cells, TOLERANCE)?);
    let efficiency = table_11::EfficiencyTable {
        counts: &counts,
        cells: &cells,
        measured: &measured,
    };
    rows.extend(efficiency.rows(&read_efficiencies()?, &read_average_efficiencies()?));
    rows.extend(accuracy()?);
    let mut counted_tolerances = deviations(&rows);
    counted_tolerances.push(derived_tables(&rows));
    let profiles = Profiles::built_in()?;
    let best = tables_6_9::best_settings(&exact_jobs(&profiles)?, &cells)?;
    let missed = match best.missed.is_empty() {
        true => String::new(),
        false => format!(" (missed: {})", best.missed.join("; ")),
    };
    counted_tolerances.push(CountedTolerance {
        what: format!(
            "best settings of tables 6 and 9, by time, energy and EDP: the bold one or within 4 % of it by the printed numbers{missed}"
        ),
        met: best.of - best.missed.len(),
        of: best.of,
        needed: best.of,
    });
    let mut conclusions = conclusions(&measured);
    conclusions.push(best_approach(&measured, &cells, &read_accuracies()?));
    Ok(Reproduction {
        fit: None,
        paper: PAPER,
        source: SOURCE,
        runs: runner.clone(),
        conclusions,
        rows,
        counted_tolerances,
        not_reproduced: vec![
            "tables 12 and 13 (accuracy) need real training: a simulated GPU does not learn"
                .to_owned(),
        ],
        jobs: Vec::new(),
        figures: figures(&measured, &cells),
        figures_not_drawn: NOT_DRAWN.into(),
    })
}

/// The rows of table 3: iterations are epochs times items divided by the batch size. Tables 6 and 9 use the printed
/// numbers.
fn table_3() -> Result<Vec<ReproducedRow>, PapersError> {
    let mut rows = Rows::new("3").with_origin(ValueOrigin::Derived);
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
        // The items of the profiles follow from the first row of each network.
        if first == Some(row) {
            rows.set_origin(ValueOrigin::Input);
        }
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
    let judged = |tolerance| match (cell.is_consistent(), cell.gpus) {
        (false, _) => Judgement::Shown,
        (true, 1) => Judgement::Each(tolerance),
        (true, _) => Judgement::Counted(TOLERANCE),
    };
    let mut times = Rows::new(tables.0).with_origin(origin_of(cell, Quantity::Time));
    let time = here.map(|here| here.time);
    let printed = Some(cell.time.get());
    *times.add(&labels, TIME, printed, time, judged(0.10)) = why_unjudged(cell);
    let mut energies = Rows::new(tables.1).with_origin(origin_of(cell, Quantity::Energy));
    let energy = here.map(|here| here.energy);
    let printed = Some(cell.energy.get());
    *energies.add(&labels, ENERGY, printed, energy, judged(0.15)) = why_unjudged(cell);
    let power = here.map(|here| here.energy / here.time);
    let printed = Some(cell.power.get());
    *energies.add(&labels, POWER, printed, power, judged(0.15)) = contradiction(cell);
    energies.set_origin(origin_of(cell, Quantity::Power));
    times.rows.extend(energies.rows);
    times.rows
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
        let (low, high) = range_of(values.iter().copied());
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
            "one Pascal needs 30 to 40 % less time and energy than one Maxwell for 2D-CNN, CaffeNet and ResNetIm (both ends within 5 points, because the text has tens)",
            [&faster, &leaner].iter().all(|gains| {
                let ends = range_of(gains.iter().copied());
                is_range_near(ends, (0.30, 0.40), TENS_TOLERANCE)
            }),
            format!(
                "{} less time, {} less energy",
                range(&faster),
                range(&leaner)
            ),
        ),
        Conclusion::new(
            "on one GPU the largest batch costs no more energy for an item than the smallest (within 1 %)",
            larger.iter().all(|ratio| *ratio <= NO_MORE),
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
