//! The checks of a machine, for a terminal.

use sweetspot_session::{Check, CheckResult};

use crate::text::{Line, Role, Text};

/// Makes the text that `sweetspot doctor` prints on a terminal.
pub fn doctor_text(checks: &[Check]) -> Text {
    let width = checks
        .iter()
        .map(|check| check.name.len())
        .max()
        .unwrap_or(0);
    let line = |check: &Check| {
        let result = Line::with_role_of(role(check.result), check.result.to_string());
        result.and(format!(" {:width$}  {}", check.name, check.finding))
    };
    checks.iter().map(line).collect()
}

/// The role of a check's result.
const fn role(result: CheckResult) -> Role {
    match result {
        CheckResult::Pass => Role::Good,
        CheckResult::Warn => Role::Warning,
        CheckResult::Fail => Role::Bad,
        CheckResult::Skip => Role::Secondary,
    }
}
