//! `sweetspot doctor`.

use anyhow::Result;
use sweetspot_report::{doctor_json, doctor_text};
use sweetspot_session::{CheckResult, doctor as run_checks};

use crate::args::DoctorArgs;
use crate::documents::{Content, Documents, Format};
use crate::exit::Outcome;
use crate::next_step::after_checks;

/// Runs `sweetspot doctor`.
pub fn run(args: &DoctorArgs) -> Result<Outcome> {
    let documents = Documents::open([(Format::Json, args.export_json.as_deref())])?;
    let checks = run_checks();
    let written = documents.write(
        Content::default()
            .text(|| doctor_text(&checks))
            .next_step(Some(after_checks(&checks)))
            .json(|| doctor_json(&checks)),
    );
    let has_failed = checks.iter().any(|check| check.result == CheckResult::Fail);
    Ok(Outcome {
        is_met: !has_failed,
        written,
        ..Outcome::DONE
    })
}
