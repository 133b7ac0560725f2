//! Reproduces table 11 of multi_gpu_2018: operations per second and watt.

use super::jobs::{JobMeasurement, find};
use super::summary::TOLERANCE;
use super::tables::{Efficiency, NetworkCost, StepCell};
use crate::origin::ValueOrigin;
use crate::row::{Judgement, Label, ReproducedRow, Rows, ValueKind};

/// The floating-point operations per second and watt.
const EFFICIENCY: ValueKind = ValueKind::relative("flops_per_watt", "GFLOPS/W", 1e-9, 1);

/// The values from which the efficiencies of table 11 are computed.
pub struct EfficiencyTable<'a> {
    pub counts: &'a [NetworkCost],
    pub cells: &'a [StepCell],
    pub measured: &'a [JobMeasurement],
}

/// The rounding error of the printed GFLOPS per watt.
const ROUNDING: f64 = 0.05;

impl EfficiencyTable<'_> {
    /// The operations per joule of a row: twice the operations of table 1, divided by `joules` of forward and backward
    /// steps on all GPUs.
    fn efficiency(&self, row: &Efficiency, joules: f64) -> Option<f64> {
        let name = row.network.as_deref()?;
        let count = self.counts.iter().find(|count| count.network == name)?;
        let operations = 1e6 * count.arithmetic_operations_millions;
        Some(2.0 * row.batch_size? as f64 * operations / (row.gpus as f64 * joules))
    }

    /// The efficiency of a row, computed from the simulated joules.
    fn efficiency_from_simulation(&self, row: &Efficiency) -> Option<f64> {
        let name = row.network.as_deref()?;
        let cell = self
            .cells
            .iter()
            .find(|cell| cell.printed_network == name)?;
        let gpu = &row.measured_gpu;
        let one = find(self.measured, gpu, cell.network, row.gpus, row.batch_size?)?;
        self.efficiency(row, one.energy())
    }

    /// The efficiency of a row, computed from the printed joules.
    fn printed(&self, row: &Efficiency) -> Option<f64> {
        let own = self.cells.iter().filter(|cell| {
            cell.gpu == row.measured_gpu
                && Some(&cell.printed_network) == row.network.as_ref()
                && cell.gpus == row.gpus
                && Some(cell.batch) == row.batch_size
        });
        let joules: Vec<f64> = own.map(|cell| cell.energy.get()).collect();
        let both = (joules.len() == 2).then(|| joules.iter().sum())?;
        self.efficiency(row, both)
    }

    /// Whether both cells of tables 5 and 8 that a row follows from are consistent.
    fn is_consistent(&self, row: &Efficiency) -> bool {
        let mut own = self.cells.iter().filter(|cell| {
            cell.gpu == row.measured_gpu
                && Some(&cell.printed_network) == row.network.as_ref()
                && cell.gpus == row.gpus
                && Some(cell.batch) == row.batch_size
        });
        own.clone().count() == 2 && own.all(StepCell::is_consistent)
    }

    /// The rows of table 11, for every cell and every average.
    pub fn rows(&self, cells: &[Efficiency], averages: &[Efficiency]) -> Vec<ReproducedRow> {
        let mut rows = Rows::new("11").with_origin(ValueOrigin::Derived);
        for row in cells {
            let printed = row.gflops_per_watt.map(|value| 1e9 * value);
            let here = self
                .efficiency_from_simulation(row)
                .filter(|_| printed.is_some());
            let judgement = match self.is_consistent(row) {
                true => Judgement::Counted(TOLERANCE),
                false => Judgement::Shown,
            };
            let note = rows.add(&labels(row), EFFICIENCY, printed, here, judgement);
            let follows = self.printed(row).zip(row.gflops_per_watt);
            *note = match follows {
                None => Some("empty in the table: the batch did not fit into memory".to_owned()),
                Some((from, value)) if (1e-9 * from - value).abs() > ROUNDING * 1.001 => {
                    Some(format!(
                        "error in the paper's table: the printed joules and operations give {:.2}",
                        1e-9 * from
                    ))
                }
                Some(_) => None,
            };
        }
        for row in averages {
            let averaged: Vec<&Efficiency> =
                cells.iter().filter(|cell| is_part(cell, row)).collect();
            let mean = |values: Vec<f64>| {
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            };
            let with_value = || {
                averaged
                    .iter()
                    .filter(|cell| cell.gflops_per_watt.is_some())
            };
            let from = mean(
                with_value()
                    .filter_map(|cell| cell.gflops_per_watt)
                    .collect(),
            );
            let here = mean(
                with_value()
                    .filter_map(|cell| self.efficiency_from_simulation(cell))
                    .collect(),
            );
            let printed = row.gflops_per_watt;
            let note = rows.add(
                &labels(row),
                EFFICIENCY,
                printed.map(|value| 1e9 * value),
                here,
                Judgement::Shown,
            );
            *note = from
                .zip(printed)
                .filter(|(from, printed)| (from - printed).abs() > 3.0 * ROUNDING)
                .map(|(from, printed)| {
                    format!(
                        "error in the paper's table: its cells average {from:.2}, printed is {printed:.1}"
                    )
                });
        }
        rows.rows
    }
}

/// The labels that identify a row.
fn labels(row: &Efficiency) -> Vec<(&'static str, Label)> {
    let batch = row.batch_size.map(Label::from);
    vec![
        ("gpu", row.measured_gpu.as_str().into()),
        (
            "network",
            row.network.as_deref().unwrap_or("average").into(),
        ),
        ("batch", batch.unwrap_or_else(|| "average".into())),
        ("gpus", row.gpus.into()),
    ]
}

/// Whether the average is taken over cells that include this one.
fn is_part(cell: &Efficiency, average: &Efficiency) -> bool {
    cell.measured_gpu == average.measured_gpu
        && cell.gpus == average.gpus
        && (average.network.is_none() || cell.network == average.network)
        && (average.batch_size.is_none() || cell.batch_size == average.batch_size)
}
