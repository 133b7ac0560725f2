//! `sweetspot measure`.

use std::time::Duration;

use anyhow::{Result, bail};
use sweetspot_report::{
    Text, measurement_csv, measurement_json, measurement_markdown, measurement_text,
};
use sweetspot_session::SessionError;
use sweetspot_session::calibrate::load_calibrations;
use sweetspot_session::measure::{
    MeasureRequest, Measurement, Recording, RunMeasurement, RunWindow, StopReason, measure, series,
};
use sweetspot_study::write_samples;
use sweetspot_workload::CommandExit;

use crate::args::MeasureArgs;
use crate::documents::{Content, Documents, Format, Written};
use crate::exit::Outcome;
use crate::next_step::after_measurement;
use crate::observer::TerminalObserver;

/// Runs `sweetspot measure`.
pub fn run(args: MeasureArgs) -> Result<Outcome> {
    let mut requested = args.export.requested();
    requested.push((Format::Samples, args.export_samples.as_deref()));
    let documents = Documents::open(requested)?;
    let request = request(args, documents.on_stdout())?;
    let (measurement, recording) = measure(&request, &mut TerminalObserver::new())?;
    let next = after_measurement(&measurement);
    let written = documents.write(content(&measurement, &recording).next_step(next));
    Ok(outcome(&measurement, written))
}

/// The text and documents of a measurement.
pub fn content<'a>(measurement: &'a Measurement, recording: &'a Recording) -> Content<'a> {
    Content::default()
        .text(|| Text::empty_line() + measurement_text(measurement))
        .notes(notes(measurement))
        .json(|| measurement_json(measurement))
        .csv(|| measurement_csv(measurement))
        .markdown(|| measurement_markdown(measurement))
        .samples(|| {
            let begin = recording.begins.first().copied().unwrap_or_default();
            Ok(write_samples(&series(&recording.recorded, begin))?)
        })
}

/// The outcome of a measurement, for the exit code.
pub fn outcome(measurement: &Measurement, written: Written) -> Outcome {
    let last = measurement.runs.last();
    let stopped = measurement.stopped.as_ref();
    Outcome {
        command: last.map(|run| CommandExit::Code(run.exit_code)),
        interrupted_by: match stopped {
            Some(StopReason::Signal(signal)) => Some(*signal),
            _ => None,
        },
        is_met: stopped.is_none() && measurement.runs.iter().all(RunMeasurement::is_met),
        written,
        ..Outcome::DONE
    }
}

/// Warnings about the measured runs, and why there are fewer runs than requested.
fn notes(measurement: &Measurement) -> Vec<String> {
    let has_several_runs = measurement.runs.len() > 1;
    let mut notes = Vec::new();
    for (number, run) in (1..).zip(&measurement.runs) {
        notes.extend(run.warnings.iter().map(|warning| match has_several_runs {
            true => format!("run {number}: {warning}"),
            false => warning.to_string(),
        }));
    }
    if let Some(StopReason::Problem(problem)) = &measurement.stopped {
        notes.push(format!("{problem}; the runs before that are shown"));
    }
    notes
}

/// The request that the flags describe; `keep_stdout` reserves standard output for a document.
fn request(args: MeasureArgs, keep_stdout: bool) -> Result<MeasureRequest> {
    let window = match (args.window, args.iterations, args.skip) {
        (window, None, None) => window.unwrap_or(match args.metrics.metrics {
            Some(_) => RunWindow::Steady,
            None => RunWindow::Run,
        }),
        (None | Some(RunWindow::Progress { .. }), iterations, skip) => RunWindow::Progress {
            skip: skip.unwrap_or(0),
            iterations,
        },
        (Some(window), _, _) => {
            bail!(
                "--iterations and --skip count progress reports: they cannot be combined with --window {window}"
            )
        }
    };
    let mut metrics = args.metrics.source()?;
    if let Some(source) = &mut metrics {
        source.sends_probes = args.probe_request;
    }
    if window == RunWindow::Steady && metrics.is_none() {
        bail!("--window steady is found on a metrics page: give --metrics URL too");
    }
    Ok(MeasureRequest {
        metrics,
        attach: args.attach,
        timeout: args
            .duration
            .map(|time| Duration::from_secs_f64(time.get())),
        device: args.device,
        runs: args.runs,
        warmup: args.warmup,
        prepare: args.prepare,
        window,
        idle: args.idle,
        progress: args.progress,
        method: args.method,
        host: args.meters.host,
        meters: args.meters.meter,
        calibrations: load_calibrations(&args.meters.calibration).map_err(SessionError::from)?,
        energy_of: args.energy_of,
        keep_stdout,
        ..MeasureRequest::new(args.cmd)
    })
}
