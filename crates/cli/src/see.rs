//! `sweetspot devices` and `sweetspot doctor`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;
use sweetspot_report::{devices_json, devices_text, doctor_json, doctor_text};
use sweetspot_session::{Verdict, devices as look, doctor as examine};

use crate::NOT_MET;
use crate::args::{DevicesArgs, DoctorArgs};
use crate::export::{Document, print};

pub fn devices(args: &DevicesArgs) -> Result<ExitCode> {
    let document = open(args.export_json.as_ref())?;
    let (driver, reports) = look(args.device.as_deref())?;
    show(
        document,
        &devices_json(&driver, &reports),
        &devices_text(&driver, &reports),
    )?;
    Ok(ExitCode::SUCCESS)
}

pub fn doctor(args: &DoctorArgs) -> Result<ExitCode> {
    let document = open(args.export_json.as_ref())?;
    let checks = examine();
    show(document, &doctor_json(&checks), &doctor_text(&checks))?;
    let sick = checks.iter().any(|check| check.verdict == Verdict::Fail);
    Ok(ExitCode::from(if sick { NOT_MET } else { 0 }))
}

fn open(path: Option<&PathBuf>) -> Result<Option<Document>> {
    path.map(|path| Document::open(path)).transpose()
}

fn show(document: Option<Document>, json: &Value, text: &str) -> Result<()> {
    let mut on_stdout = false;
    if let Some(document) = document {
        on_stdout = document.is_stdout();
        document.write(&(serde_json::to_string_pretty(json)? + "\n"))?;
    }
    if on_stdout { Ok(()) } else { print(text) }
}
