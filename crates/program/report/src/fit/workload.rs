//! A workload that was fitted to measurements at several batch sizes, for a terminal.

use sweetspot_fit::{FittedRow, FittedWorkload};

/// Describes a fit: the number of parameters and values, and the largest deviations.
pub fn fit_workload_text(fitted: &FittedWorkload) -> String {
    let largest = |of: fn(&FittedRow) -> f64| {
        let rows = fitted.rows.iter().map(|row| (row.measured.batch, of(row)));
        let largest = rows.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        largest.unwrap_or_default()
    };
    let (batch, throughput) = largest(|row| row.throughput_deviation().get());
    let (of_power, power) = largest(|row| row.power_deviation().get());
    let mut text = format!(
        "fitted {} parameters to {} values; largest deviations: throughput {:+.1} % (batch {batch}), mean power {:+.1} % (batch {of_power})\n",
        fitted.parameters,
        fitted.values,
        100.0 * throughput,
        100.0 * power,
    );
    if throughput.abs().max(power.abs()) > LARGE_DEVIATION {
        text += "warning: the profile is far from some rows: check that they were measured on this GPU and that none is an outlier\n";
    }
    text
}

/// The deviation above which a profile does not match its measurements.
const LARGE_DEVIATION: f64 = 0.35;
