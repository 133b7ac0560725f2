//! `sweetspot simulate`.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use sweetspot_fit::{FitRequest, RowChoice, fit_workload, measured_rows, workload_text};
use sweetspot_papers::{Profiles, SimulatorDeviations, deviations, deviations_of, studies};
use sweetspot_report::{
    Text, deviations_summary, deviations_text, fit_workload_text, profiles_text,
};
use sweetspot_session::SessionError;
use sweetspot_sim::{Mode, find_gpu, gpus, nodes, parse_workload, workloads};
use sweetspot_sim_host::{HostParts, TemporaryHost};
use sweetspot_workload::{
    CommandSpec, NoHandler, OnSignal, ProgressReader, RunLimits, SignalSource, run_until_exit,
};

use crate::args::SimulateArgs;
use crate::documents::{Content, Documents, Format, WriteError, print, print_unchanged};
use crate::exit::Outcome;
use crate::messages::print_text;

/// The simulated NVML library, which is part of this program.
static NVML_LIBRARY: &[u8] = include_bytes!(env!("SWEETSPOT_NVML_SIM"));

/// Runs `sweetspot simulate`.
pub fn run(args: SimulateArgs) -> Result<Outcome> {
    if let Some(rows) = &args.fit {
        return fit_to_file(&args, rows);
    }
    if args.gpu.is_some() || args.node.is_some() {
        let parts = HostParts::new(args.gpu.as_deref(), args.node.as_deref())?;
        let host = TemporaryHost::new(parts, NVML_LIBRARY, args.seed)?;
        let environment = host.environment().into_iter();
        let command = CommandSpec {
            environment: environment
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ..CommandSpec::new(args.cmd)
        };
        return run_in_environment(&command);
    }
    if args.list {
        print_as(&args, &profiles_text(&gpus()?, &nodes()?, &workloads()?))?;
        return Ok(Outcome::DONE);
    }
    let studies = compare_with_papers(args.errors.as_ref().and_then(|name| name.as_deref()))?;
    match args.summary {
        true => print(deviations_summary(&studies))?,
        false => print_as(&args, &deviations_text(&studies))?,
    }
    let is_met = studies.iter().all(|study| {
        let (met, judged) = study.count_met();
        met == judged
    });
    Ok(Outcome::met(is_met))
}

/// Prints a text for people, or as Markdown.
fn print_as(args: &SimulateArgs, text: &Text) -> Result<(), WriteError> {
    match args.markdown {
        true => print_unchanged(&text.to_markdown()),
        false => print(text),
    }
}

/// Runs a command as `env` would: signals are passed on, and its exit code is returned.
fn run_in_environment(command: &CommandSpec) -> Result<Outcome> {
    let signals = SignalSource::listen().map_err(SessionError::from)?;
    let limits = RunLimits {
        on_signal: OnSignal::PassOn,
        ..RunLimits::default()
    };
    let mut reader = ProgressReader::without_link();
    let outcome = run_until_exit(command, limits, None, &signals, &mut reader, &mut NoHandler);
    Ok(Outcome {
        command: Some(outcome.map_err(SessionError::from)?.ended),
        ..Outcome::DONE
    })
}

/// Compares the simulator with all studies or the named one. Words of the name may be separated by `-` or `_`.
fn compare_with_papers(name: Option<&str>) -> Result<Vec<SimulatorDeviations>> {
    let profiles = Profiles::built_in()?;
    let Some(name) = name else {
        return Ok(deviations(&profiles)?);
    };
    match deviations_of(&name.replace('-', "_"), &profiles)? {
        Some(study) => Ok(vec![study]),
        None => bail!(
            "--errors: there is no study `{name}`; there are {}",
            studies().collect::<Vec<_>>().join(", ")
        ),
    }
}

/// The largest accepted size of a file of measurements.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Fits a workload profile to the measurements in a file.
fn fit_to_file(args: &SimulateArgs, path: &Path) -> Result<Outcome> {
    let (gpu_name, gpu) = find_gpu(args.gpu.as_deref().unwrap_or_default())?;
    let documents = Documents::open([(Format::Toml, Some(args.output.as_path()))])?;
    let file = path.display().to_string();
    let text = read_file(path).with_context(|| format!("cannot read {file}"))?;
    let choice = RowChoice {
        network: args.network.clone(),
        mode: args.mode(),
    };
    let (rows, found) = measured_rows(&file, &text, &choice)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let named = args.network.clone().or(found.network);
    let request = FitRequest {
        gpu_name,
        gpu,
        network: named.unwrap_or_else(|| stem.into_owned()),
        mode: found.mode.unwrap_or(Mode::Train),
        rows,
    };
    let fitted = fit_workload(&request).with_context(|| file.clone())?;
    let text = workload_text(&fitted);
    // An invalid name is reported now, not when the profile is used.
    parse_workload("the fitted profile", &text)?;
    print_text(&fit_workload_text(&fitted).into());
    let written = documents.write(Content::default().toml(|| Ok(text)));
    Ok(Outcome {
        written,
        ..Outcome::DONE
    })
}

/// Reads a file of measurements, which must not be too large.
fn read_file(path: &Path) -> Result<String> {
    let file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        bail!("it is not a file");
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        bail!(
            "the file is too large: at most {} MiB of measurements are read",
            MAX_FILE_BYTES >> 20
        );
    }
    Ok(text)
}
