//! `sweetspot measure`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use sweetspot_report::{measurement_csv, measurement_json, measurement_markdown, measurement_text};
use sweetspot_session::SessionError;
use sweetspot_session::measure::{
    MeasureRequest, Measurement, Recording, RunMeasurement, Stopped, Window, measure, series,
};
use sweetspot_study::write_samples;
use sweetspot_workload::WorkloadError;

use crate::NOT_MET;
use crate::args::{MeasureArgs, TextExportArgs};
use crate::child::{by_signal, not_run, passed_on};
use crate::export::{Document, is_closed_pipe, print, refuse_twins};
use crate::observer::TerminalObserver;

pub fn run(args: MeasureArgs) -> Result<ExitCode> {
    let documents = Documents::open(&args.export, &args.export_samples)?;
    let request = request(args, documents.on_stdout())?;
    match measure(&request, &mut TerminalObserver::new()) {
        Ok((measurement, recording)) => Ok(documents.tell(&measurement, &recording)),
        Err(error) => not_measured(error),
    }
}

/// Where a measurement goes.
pub struct Documents {
    json: Option<Document>,
    csv: Option<Document>,
    markdown: Option<Document>,
    samples: Option<Document>,
}

impl Documents {
    pub fn open(export: &TextExportArgs, samples: &Option<PathBuf>) -> Result<Self> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(Document::open).transpose();
        let documents = Self {
            json: open(&export.export_json)?,
            csv: open(&export.export_csv)?,
            markdown: open(&export.export_md)?,
            samples: open(samples)?,
        };
        refuse_twins(&documents.all())?;
        Ok(documents)
    }

    fn all(&self) -> Vec<&Document> {
        let all = [&self.json, &self.csv, &self.markdown, &self.samples];
        all.into_iter().flatten().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    pub fn on_stdout(&self) -> bool {
        self.all().iter().any(|document| document.is_stdout())
    }

    /// What was measured is shown before it is saved, and each document is tried: a full disk or a closed
    /// pipe loses nothing that can be told.
    pub fn tell(&self, measurement: &Measurement, recording: &Recording) -> ExitCode {
        let mut written = Written::default();
        if !self.on_stdout() {
            written.note(print(&format!("\n{}", measurement_text(measurement))));
        }
        tell(measurement);
        if let Some(json) = &self.json {
            let text = serde_json::to_string_pretty(&measurement_json(measurement));
            let text = text.map_err(Into::into);
            written.note(text.and_then(|text| json.write(&(text + "\n"))));
        }
        if let Some(csv) = &self.csv {
            let text = measurement_csv(measurement).map_err(Into::into);
            written.note(text.and_then(|text| csv.write(&text)));
        }
        if let Some(markdown) = &self.markdown {
            written.note(markdown.write(&measurement_markdown(measurement)));
        }
        if let Some(samples) = &self.samples {
            let begin = recording.begins.first().copied().unwrap_or_default();
            let bytes = write_samples(&series(&recording.recorded, begin)).map_err(Into::into);
            written.note(bytes.and_then(|bytes| samples.write_bytes(&bytes)));
        }
        code(measurement, !written.failed)
    }
}

/// The command's own code where it failed; then whether everything that was asked for is there.
fn code(measurement: &Measurement, is_written: bool) -> ExitCode {
    let last = measurement.runs.last().map_or(0, |run| run.exit_code);
    let is_met = measurement.runs.iter().all(RunMeasurement::is_met);
    match &measurement.stopped {
        _ if last != 0 => passed_on(last),
        Some(Stopped::Signal(signal)) => by_signal(*signal),
        None if is_met && is_written => ExitCode::SUCCESS,
        _ => ExitCode::from(NOT_MET),
    }
}

pub fn not_measured(error: SessionError) -> Result<ExitCode> {
    match &error {
        SessionError::Workload(WorkloadError::NotStarted { is_missing, .. }) => {
            eprintln!("sweetspot: {error}");
            Ok(not_run(*is_missing))
        }
        SessionError::Workload(WorkloadError::Interrupted(signal)) => {
            eprintln!("sweetspot: {error}");
            Ok(by_signal(*signal))
        }
        _ => Err(error.into()),
    }
}

/// What should be known about the figures.
fn tell(measurement: &Measurement) {
    let several = measurement.runs.len() > 1;
    for (number, run) in (1..).zip(&measurement.runs) {
        for warning in &run.warnings {
            if several {
                eprintln!("sweetspot: run {number}: {warning}");
            } else {
                eprintln!("sweetspot: {warning}");
            }
        }
    }
    if let Some(Stopped::Problem(problem)) = &measurement.stopped {
        eprintln!("sweetspot: {problem}; the runs before that are shown");
    }
}

/// Whether all could be written.
#[derive(Default)]
struct Written {
    failed: bool,
}

impl Written {
    fn note(&mut self, result: Result<()>) {
        match result {
            Err(error) if !is_closed_pipe(&error) => {
                eprintln!("sweetspot: {error:#}");
                self.failed = true;
            }
            _ => {}
        }
    }
}

fn request(args: MeasureArgs, keep_stdout: bool) -> Result<MeasureRequest> {
    let window = match (args.window, args.iterations, args.skip) {
        (window, None, None) => window.unwrap_or(Window::Run),
        (None | Some(Window::Progress { .. }), iterations, skip) => Window::Progress {
            skip: skip.unwrap_or(0),
            iterations,
        },
        (Some(window), _, _) => {
            bail!("--iterations and --skip count progress: they cannot go with --window {window}")
        }
    };
    Ok(MeasureRequest {
        device: args.device,
        runs: args.runs,
        warmup: args.warmup,
        prepare: args.prepare,
        window,
        idle: args.idle,
        progress: args.progress,
        method: args.method,
        keep_stdout,
        ..MeasureRequest::of(args.cmd)
    })
}
