//! How far the reproduction of multi_gpu_2018 is from its consistent cells, and what follows for the choice of a batch.

use super::jobs::{BATCHES, GPU_COUNTS, JobMeasurement, NETWORKS, PASCAL, energy_of_all, find};
use super::origins::is_fitted_on_several;
use super::tables::{Accuracy, StepCell};
use crate::row::{Conclusion, CountedTolerance, Judgement, ReproducedRow};

/// The tolerance of values on several GPUs, which nine of ten must meet.
pub const TOLERANCE: f64 = 0.20;
/// The share of the values that must be within [`TOLERANCE`].
const NEEDED_SHARE: f64 = 0.9;
/// Accuracies within this difference of the best count as equal: section 8.5 calls 4 % a small difference.
const ACCURACY_MARGIN: f64 = 0.05;

/// The tables with the steps of a batch.
const STEP_TABLES: [&str; 4] = ["4", "5", "7", "8"];

/// A group of values: its name, and whether a row with this network, step and number of GPUs, a time or not, belongs to it.
type Group = (&'static str, fn(&str, &str, u64, bool) -> bool);

/// The groups whose deviations are told apart.
const GROUPS: [Group; 4] = [
    (
        "all consistent cells of tables 4, 5, 7 and 8",
        |_, _, _, _| true,
    ),
    (
        "on one GPU (the profiles were fitted to them)",
        |_, _, gpus, _| gpus == 1,
    ),
    (
        "CaffeNet on several GPUs (the links were fitted to them), energy and power of ResNet's backward step on two (its power was chosen with them in view)",
        is_fitted_on_several,
    ),
    (
        "the others on several GPUs (predicted)",
        |network, step, gpus, is_time| {
            gpus > 1 && !is_fitted_on_several(network, step, gpus, is_time)
        },
    ),
];

/// The value of a label of a row, as text and as a number.
fn label(row: &ReproducedRow, wanted: &str) -> (String, f64) {
    let found = row.row.iter().find(|(name, _)| *name == wanted);
    let text = found
        .map(|(_, label)| label.to_string())
        .unwrap_or_default();
    let number = text.parse().unwrap_or(0.0);
    (text, number)
}

/// How many values of each group are within the tolerance, with the median and the 90th percentile of the deviations.
pub fn deviations(rows: &[ReproducedRow]) -> Vec<CountedTolerance> {
    let is_judged = |row: &&ReproducedRow| {
        STEP_TABLES.contains(&row.table.as_str()) && row.judgement != Judgement::Shown
    };
    let judged: Vec<&ReproducedRow> = rows.iter().filter(is_judged).collect();
    let of_group = |(name, is_member): &Group| {
        let own = judged.iter().filter(|row| {
            let (network, _) = label(row, "network");
            let (step, _) = label(row, "step");
            is_member(
                &network,
                &step,
                label(row, "gpus").1 as u64,
                row.kind.key == "time_s",
            )
        });
        let mut sizes: Vec<f64> = own
            .map(|row| row.deviation().map_or(f64::INFINITY, f64::abs))
            .collect();
        sizes.sort_by(f64::total_cmp);
        let quantile = |share: f64| {
            let place = (share * sizes.len() as f64).ceil() as usize;
            100.0 * sizes.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
        };
        CountedTolerance {
            what: format!(
                "{name}: time, energy and power within {:.0} %; the median deviation is {:.1} %, the 90th percentile {:.1} %",
                100.0 * TOLERANCE,
                quantile(0.5),
                quantile(0.9)
            ),
            met: sizes.iter().filter(|size| **size <= TOLERANCE).count(),
            of: sizes.len(),
            needed: (NEEDED_SHARE * sizes.len() as f64).ceil() as usize,
        }
    };
    GROUPS.iter().map(of_group).collect()
}

/// The rule that nine of ten values of tables 6, 9, 10 and 11 that follow from consistent cells are within the tolerance.
pub fn derived_tables(rows: &[ReproducedRow]) -> CountedTolerance {
    let is_judged = |row: &&ReproducedRow| {
        ["6", "9", "10", "11"].contains(&row.table.as_str())
            && matches!(row.judgement, Judgement::Counted(_))
    };
    let judged: Vec<&ReproducedRow> = rows.iter().filter(is_judged).collect();
    let met = judged
        .iter()
        .filter(|row| row.is_within_tolerance() == Some(true));
    CountedTolerance {
        what: format!(
            "values of tables 6, 9, 10 and 11 that follow from consistent cells, within {:.0} %",
            100.0 * TOLERANCE
        ),
        met: met.count(),
        of: judged.len(),
        needed: (NEEDED_SHARE * judged.len() as f64).ceil() as usize,
    }
}

/// Section 8.6: the batch to choose by energy-delay product, without and with regard to the paper's accuracies.
pub fn best_approach(
    measured: &[JobMeasurement],
    cells: &[StepCell],
    accuracies: &[Accuracy],
) -> Conclusion {
    let mut choices = Vec::new();
    for network in NETWORKS {
        let cell = cells.iter().find(|cell| cell.network == network);
        let printed = cell.map_or("", |cell| cell.printed_network.as_str());
        let accuracy = |batch: u64| {
            let own = accuracies.iter().find(|row| {
                row.network == printed && row.batch_size == batch && row.measure != "top-5"
            });
            own.map(|row| row.accuracy_pct / 100.0)
        };
        let best = BATCHES.into_iter().filter_map(accuracy).fold(0.0, f64::max);
        let accurate =
            |batch: &u64| accuracy(*batch).is_some_and(|value| value >= best - ACCURACY_MARGIN);
        let without = best_batch(measured, network, &BATCHES);
        let accurate: Vec<u64> = BATCHES.into_iter().filter(accurate).collect();
        choices.push((printed, without, best_batch(measured, network, &accurate)));
    }
    let expected = |name: &str| {
        if name == "ResNet" {
            Some(64)
        } else {
            Some(256)
        }
    };
    let text = choices.iter().map(|(name, without, with)| {
        let batch =
            |batch: &Option<u64>| batch.map_or("none".to_owned(), |batch| batch.to_string());
        format!("{name} {} and {}", batch(without), batch(with))
    });
    Conclusion::new(
        "section 8.6: by energy-delay product a batch of 256 is best for every network; with accuracy within 5 points of the best, ResNet needs a batch of 64",
        choices
            .iter()
            .all(|(name, without, with)| *without == Some(256) && *with == expected(name)),
        format!(
            "without and with accuracy: {}",
            text.collect::<Vec<_>>().join(", ")
        ),
    )
}

/// The batch with the lowest energy-delay product for an item on Pascal, over all numbers of GPUs.
fn best_batch(measured: &[JobMeasurement], network: &str, batches: &[u64]) -> Option<u64> {
    let edp = |gpus: u64, batch: u64| {
        let items = batch as f64;
        let time = find(measured, PASCAL, network, gpus, batch)?.time() / items;
        let energy = energy_of_all(measured, PASCAL, network, gpus, batch)? / items;
        Some((time * energy, batch))
    };
    let all = batches
        .iter()
        .flat_map(|batch| GPU_COUNTS.map(|gpus| edp(gpus, *batch)));
    let best = all.flatten().min_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, batch)| batch)
}
