//! `sweetspot measure`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_report::{measurement_csv, measurement_json, measurement_markdown, measurement_text};
use sweetspot_session::SessionError;
use sweetspot_session::measure::{
    MeasureRequest, Measurement, RunMeasurement, Stopped, Watch, Window, measure, series,
};
use sweetspot_study::write_samples;

use crate::NOT_MET;
use crate::args::MeasureArgs;
use crate::child::{by_signal, not_run, passed_on};
use crate::export::{Document, is_closed_pipe, print, refuse_twins};

pub fn run(args: MeasureArgs) -> Result<ExitCode> {
    let open = |path: &Option<PathBuf>| -> Result<Option<Document>> {
        path.as_deref().map(Document::open).transpose()
    };
    let json = open(&args.export.export_json)?;
    let csv = open(&args.export.export_csv)?;
    let markdown = open(&args.export.export_md)?;
    let samples = open(&args.export_samples)?;
    let all: Vec<&Document> = [&json, &csv, &markdown, &samples]
        .into_iter()
        .flatten()
        .collect();
    refuse_twins(&all)?;
    let on_stdout = all.iter().any(|document| document.is_stdout());
    let request = request(args, on_stdout)?;
    let mut line = Line::new();
    let (measurement, recording) = match measure(&request, &mut line) {
        Ok(measured) => measured,
        Err(error) => return not_measured(error),
    };
    // What was measured is shown before it is saved, and each document is tried: a full disk or a closed pipe
    // loses nothing that can be told.
    let mut written = Written::default();
    if !on_stdout {
        written.note(print(&format!("\n{}", measurement_text(&measurement))));
    }
    tell(&measurement);
    if let Some(json) = json {
        let text = serde_json::to_string_pretty(&measurement_json(&measurement));
        written.note(
            text.map_err(Into::into)
                .and_then(|text| json.write(&(text + "\n"))),
        );
    }
    if let Some(csv) = csv {
        let text = measurement_csv(&measurement);
        written.note(text.map_err(Into::into).and_then(|text| csv.write(&text)));
    }
    if let Some(markdown) = markdown {
        written.note(markdown.write(&measurement_markdown(&measurement)));
    }
    if let Some(samples) = samples {
        let begin = recording.begins.first().copied().unwrap_or_default();
        let bytes = write_samples(&series(&recording.recorded, begin));
        written.note(
            bytes
                .map_err(Into::into)
                .and_then(|bytes| samples.write_bytes(&bytes)),
        );
    }
    Ok(code(&measurement, !written.failed))
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

fn not_measured(error: SessionError) -> Result<ExitCode> {
    match &error {
        SessionError::NotStarted { problem, .. } => {
            eprintln!("sweetspot: {error}");
            Ok(not_run(problem.kind() == std::io::ErrorKind::NotFound))
        }
        SessionError::Interrupted(signal) => {
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
        command: args.cmd,
        runs: args.runs,
        warmup: args.warmup,
        prepare: args.prepare,
        window,
        idle: args.idle,
        progress: args.progress,
        method: args.method,
        keep_stdout,
    })
}

/// One line on the terminal that tells how it goes.
struct Line {
    on_terminal: bool,
    shown: bool,
    energy: Joules,
    last: Seconds,
    begun: Seconds,
}

impl Line {
    fn new() -> Self {
        Self {
            on_terminal: std::io::stderr().is_terminal(),
            shown: false,
            energy: Joules::ZERO,
            last: Seconds::ZERO,
            begun: Seconds::ZERO,
        }
    }
}

/// Often enough for an eye, seldom enough for a log that a terminal keeps.
const EVERY: Seconds = Seconds::new(0.2);

impl Watch for Line {
    fn tick(&mut self, elapsed: Seconds, power: Option<Watts>, items: u64) {
        if elapsed < self.last {
            (self.energy, self.last, self.begun) = (Joules::ZERO, Seconds::ZERO, Seconds::ZERO);
        }
        if let Some(power) = power {
            self.energy += power * (elapsed - self.last);
        }
        self.last = elapsed;
        if !self.on_terminal || elapsed - self.begun < EVERY {
            return;
        }
        self.begun = elapsed;
        let power = power.map_or_else(|| "- W".to_owned(), |power| format!("{power:.0}"));
        let items = match items {
            0 => String::new(),
            items => format!("  {items} items"),
        };
        // What the command prints then begins at the begin of the line.
        let _ = write!(
            std::io::stderr(),
            "\r\x1b[K{elapsed:.1}  {power}  about {:.0}{items}\r",
            self.energy
        );
        self.shown = true;
    }

    fn clear(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
            self.shown = false;
        }
    }

    fn tell(&mut self, note: &str) {
        self.clear();
        eprintln!("sweetspot: {note}");
    }
}
