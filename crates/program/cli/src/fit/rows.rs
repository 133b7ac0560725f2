//! Fits a workload profile to a CSV file of measured rows.

use std::path::Path;

use anyhow::{Context, Result};
use sweetspot_fit::{FitRequest, RowChoice, fit_workload, measured_rows, workload_text};
use sweetspot_report::{Line, Text, fit_workload_text};
use sweetspot_sim::{Mode, find_gpu, parse_workload};

use super::{check_extension, write_fit};
use crate::documents::{Content, Documents, Format};
use crate::exit::Outcome;

/// The largest accepted size of a file of measurements.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A file of rows, and what to make of it.
pub struct RowsFit<'a> {
    /// The CSV file.
    pub path: &'a Path,
    /// The GPU on which the rows were measured.
    pub gpu: &'a str,
    /// The network to fit, if the file contains several; also its name in the profile.
    pub network: Option<&'a str>,
    /// Whether to fit training or inference, if the file contains both or does not say it.
    pub mode: Option<Mode>,
    /// The file to write the profile to; `-` is standard output.
    pub output: Option<&'a Path>,
}

/// Fits a workload profile to the measurements in a file.
pub fn fit_rows(fit: &RowsFit<'_>) -> Result<Outcome> {
    check_extension(fit.output)?;
    let (gpu_name, gpu) = find_gpu(fit.gpu)?;
    let documents = Documents::open([(Format::Toml, fit.output)])?;
    let file = fit.path.display().to_string();
    let text = read_file(fit.path).with_context(|| format!("cannot read {file}"))?;
    let choice = RowChoice {
        network: fit.network.map(str::to_owned),
        mode: fit.mode,
    };
    let (rows, found) = measured_rows(&file, &text, &choice)?;
    let stem = fit.path.file_stem().unwrap_or_default().to_string_lossy();
    let network = choice.network.or(found.network);
    let request = FitRequest {
        gpu_name: gpu_name.clone(),
        gpu,
        network: network.unwrap_or_else(|| stem.into_owned()),
        mode: found.mode.unwrap_or(Mode::Train),
        rows,
    };
    let fitted = fit_workload(&request).with_context(|| file.clone())?;
    let text = workload_text(&fitted);
    // An invalid name is reported now, not when the profile is used.
    parse_workload("the fitted profile", &text)?;
    let content = Content::default().toml(|| Ok(text));
    let summary = Text::from(fit_workload_text(&fitted));
    let written = write_fit(&documents, content, &summary, fit.output, |profile| {
        let try_it = format!("sweetspot sweep --simulate {gpu_name} --network {profile}");
        Text::from(format!("Profile: {profile} (the workload)"))
            + Line::with_command("Try:", &try_it)
    })?;
    Ok(Outcome {
        written,
        ..Outcome::DONE
    })
}

/// Reads a file of measurements, which must not be too large.
fn read_file(path: &Path) -> Result<String> {
    Ok(sweetspot_input::read_text(path, MAX_FILE_BYTES)?)
}
