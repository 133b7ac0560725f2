//! The document of the checks of a machine, `sweetspot.doctor/1`.

use sweetspot_document::common::SchemaName;
use sweetspot_document::doctor as document;
use sweetspot_session::{Check, Verdict};

/// Makes the document of the checks of a machine.
pub fn doctor_json(checks: &[Check]) -> document::Doctor {
    let checks = checks.iter().map(|check| document::Check {
        name: check.name.to_owned(),
        verdict: match check.verdict {
            Verdict::Pass => document::Verdict::Pass,
            Verdict::Warn => document::Verdict::Warn,
            Verdict::Fail => document::Verdict::Fail,
            Verdict::Skip => document::Verdict::Skip,
        },
        finding: check.finding.clone(),
    });
    document::Doctor {
        schema: SchemaName::DOCTOR,
        checks: checks.collect(),
    }
}
