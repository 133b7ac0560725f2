//! The deviations of a study that a fit reduces.

use sweetspot_papers::{SimulatorDeviations, ValueOrigin};

/// Prints the rows whose label begins with a text, which were not fitted.
pub fn print_rows(deviations: &SimulatorDeviations, label: &str) {
    for (row, values) in deviations.tables.iter().flat_map(|table| &table.rows) {
        if row.starts_with(label) {
            for value in values {
                println!(
                    "# {row}: published {}, here {:.3}",
                    value.published, value.here
                );
            }
        }
    }
}

/// The deviation of each value relative to its tolerance; values without a tolerance count little.
pub fn residuals_of(deviations: &SimulatorDeviations) -> Vec<f64> {
    residuals_without(deviations, "")
}

/// The same, without the rows whose label begins with a text, if it is not empty.
pub fn residuals_without(deviations: &SimulatorDeviations, without: &str) -> Vec<f64> {
    // Best caps jump, so that there is no derivative.
    let smooth = deviations
        .tables
        .iter()
        .filter(|table| !table.title.ends_with("caps"));
    let is_used = |label: &str| without.is_empty() || !label.starts_with(without);
    let rows = smooth.flat_map(|table| table.rows.iter().map(move |row| (row, &table.columns)));
    let rows = rows.filter(|((label, _), _)| is_used(label));
    let values = rows.flat_map(|((_, values), columns)| values.iter().zip(columns));
    // Predicted values stay predicted, and derived ones would count twice.
    let values =
        values.filter(|(value, _)| matches!(value.origin, None | Some(ValueOrigin::Fitted)));
    let values = values.map(|(value, column)| match value.tolerance {
        Some(0.0) => 0.0,
        Some(tolerance) => value.deviation(column.deviation_kind) / tolerance,
        None => 0.05 * value.deviation(column.deviation_kind),
    });
    values.collect()
}
