//! `sweetspot fit`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use sweetspot_report::{fit_study_json, fit_study_text};
use sweetspot_session::{fit_study, measured_study, profile_text};
use sweetspot_sim::{parse_gpu, parse_workload};
use sweetspot_study::Store;

use crate::NOT_MET;
use crate::args::FitArgs;
use crate::export::{Document, print};

pub fn run(args: &FitArgs) -> Result<ExitCode> {
    let output = args.output.as_deref().map(profile).transpose()?;
    let json = args
        .export_json
        .as_deref()
        .map(Document::open)
        .transpose()?;
    let on_stdout =
        |document: &Option<Document>| document.as_ref().is_some_and(Document::is_stdout);
    if on_stdout(&output) && on_stdout(&json) {
        bail!("the profile and the JSON cannot both go to standard output");
    }
    let folder = crate::study::folder(&args.study);
    let study = Store::open(&folder)?.study(args.energy_of)?;
    let name = folder.display().to_string();
    let fitted = measured_study(&study).and_then(|measured| fit_study(&measured));
    let fitted = fitted.with_context(|| name.clone())?;
    let text = profile_text(&name, &fitted);
    // Nothing is written that could not be used.
    parse_gpu("the fitted profile", &text)?;
    parse_workload("the fitted profile", &text)?;
    let mut table = fit_study_text(&study.varied(), &fitted);
    if let Some(output) = &output {
        output.write(&text)?;
        if !output.is_stdout() {
            table += &format!(
                "\nProfile: {output} (the GPU and the workload)\nTry: sweetspot sweep --simulate {output} --network {output}\n"
            );
        }
    }
    if let Some(json) = &json {
        json.write(&format!("{:#}\n", fit_study_json(&name, &fitted)))?;
    }
    match on_stdout(&output) || on_stdout(&json) {
        true => eprint!("{table}"),
        false => print(&table)?,
    }
    Ok(ExitCode::from(if fitted.errors.is_near_enough() {
        0
    } else {
        NOT_MET
    }))
}

/// A file that is taken for a profile by its name.
fn profile(path: &Path) -> Result<Document> {
    let is_toml = path
        .extension()
        .is_some_and(|extension| extension == "toml");
    if path != Path::new("-") && !is_toml && !path.is_dir() {
        bail!(
            "--output: name it {}.toml: that is how a profile is told from a name",
            path.display()
        );
    }
    Document::open(path)
}
