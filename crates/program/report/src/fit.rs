//! What a fit came to.

use sweetspot_fit::{FittedRow, FittedWorkload};

/// How many parameters and values there were, and the largest deviations.
pub fn fit_text(fitted: &FittedWorkload) -> String {
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
    if throughput.abs().max(power.abs()) > FAR {
        text += "warning: the profile is far from some of the rows: are they of this GPU, and is an odd one among them?\n";
    }
    text
}

/// No batch size is allowed to be farther off.
const FAR: f64 = 0.35;
