//! The deviations of a study that a fit reduces.

use sweetspot_papers::{DeviationKind, SimulatorDeviations, ValueOrigin, is_held_out};

/// Prints the rows that were not fitted.
pub fn print_rows(deviations: &SimulatorDeviations, without: &str) {
    for table in &deviations.tables {
        for (label, values) in &table.rows {
            if is_held_out(without, &table.title, label) {
                for value in values {
                    let (published, here) = (value.published, value.here);
                    println!("# {label}: published {published}, here {here:.3}");
                }
            }
        }
    }
}

/// The deviation of each fitted value relative to its tolerance.
pub fn residuals_of(deviations: &SimulatorDeviations) -> Vec<f64> {
    residuals_without(deviations, "")
}

/// The same, without a table or some rows, if the text that names them is not empty.
pub fn residuals_without(deviations: &SimulatorDeviations, without: &str) -> Vec<f64> {
    let mut residuals = Vec::new();
    for table in &deviations.tables {
        for (label, values) in &table.rows {
            if !without.is_empty() && is_held_out(without, &table.title, label) {
                continue;
            }
            for (value, column) in values.iter().zip(&table.columns) {
                // Predicted values stay predicted, and derived ones would count twice.
                if matches!(value.origin, None | Some(ValueOrigin::Fitted)) {
                    residuals.push(match value.tolerance {
                        // Best settings jump, so that there is no derivative.
                        Some(0.0) => 0.0,
                        Some(tolerance) => value.deviation(column.deviation_kind) / tolerance,
                        // A value that is not judged counts as if it were tolerated to be off by a fifth, or by 20 points.
                        None => match column.deviation_kind {
                            DeviationKind::Relative => value.deviation(column.deviation_kind) / 0.2,
                            DeviationKind::Difference => {
                                value.deviation(column.deviation_kind) / 20.0
                            }
                        },
                    });
                }
            }
        }
    }
    residuals
}
