//! The checks of a machine, for a terminal.

use sweetspot_session::Check;

/// Makes the text that `sweetspot doctor` prints on a terminal.
pub fn doctor_text(checks: &[Check]) -> String {
    let width = checks
        .iter()
        .map(|check| check.name.len())
        .max()
        .unwrap_or(0);
    let line = |check: &Check| {
        format!(
            "{}  {:width$}  {}\n",
            check.result, check.name, check.finding
        )
    };
    checks.iter().map(line).collect()
}
