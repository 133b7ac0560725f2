//! `sweetspot devices` and `sweetspot doctor`.

use std::path::Path;

use anyhow::Result;
use sweetspot_report::{devices_json, devices_text, doctor_json, doctor_text};
use sweetspot_session::{CheckResult, devices as inspect_devices, doctor as run_checks};

use crate::args::{DevicesArgs, DoctorArgs};
use crate::documents::{Content, Documents, Format};
use crate::exit::Outcome;

pub fn devices(args: &DevicesArgs) -> Result<Outcome> {
    let documents = open(args.export_json.as_deref())?;
    let (driver, reports) = inspect_devices(args.device.as_deref())?;
    let written = documents.write(
        Content::default()
            .text(|| devices_text(&driver, &reports))
            .json(|| devices_json(&driver, &reports)),
    );
    Ok(Outcome {
        written,
        ..Outcome::DONE
    })
}

pub fn doctor(args: &DoctorArgs) -> Result<Outcome> {
    let documents = open(args.export_json.as_deref())?;
    let checks = run_checks();
    let written = documents.write(
        Content::default()
            .text(|| doctor_text(&checks))
            .json(|| doctor_json(&checks)),
    );
    let has_failed = checks.iter().any(|check| check.result == CheckResult::Fail);
    Ok(Outcome {
        is_met: !has_failed,
        written,
        ..Outcome::DONE
    })
}

fn open(json: Option<&Path>) -> Result<Documents> {
    Documents::open([(Format::Json, json)])
}
