//! The document of the checks of a machine, `sweetspot.doctor/1`.

use sweetspot_document::common::SchemaName;
use sweetspot_document::doctor as document;
use sweetspot_session::{Check, CheckResult};

/// Makes the document of the checks of a machine.
pub fn doctor_json(checks: &[Check]) -> document::Doctor {
    let checks = checks.iter().map(|check| document::Check {
        name: check.name.to_owned(),
        verdict: match check.result {
            CheckResult::Pass => document::Verdict::Pass,
            CheckResult::Warn => document::Verdict::Warn,
            CheckResult::Fail => document::Verdict::Fail,
            CheckResult::Skip => document::Verdict::Skip,
        },
        finding: check.finding.clone(),
    });
    document::Doctor {
        schema: SchemaName::DOCTOR,
        checks: checks.collect(),
    }
}
