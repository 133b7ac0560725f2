//! `sweetspot measure`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_report::{
    measurement_csv, measurement_json, measurement_markdown, measurement_text, samples_parquet,
};
use sweetspot_session::SessionError;
use sweetspot_session::measure::{MeasureRequest, Watch, Window, measure};

use crate::args::MeasureArgs;
use crate::child::{not_run, passed_on};
use crate::export::{Document, print};

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
    if let Some(twice) = (1..all.len()).find(|index| all[..*index].contains(&all[*index])) {
        bail!(
            "two documents cannot go to {}: give each its own file",
            all[twice]
        );
    }
    let on_stdout = all.iter().any(|document| document.is_stdout());
    let request = request(args, on_stdout)?;
    let mut line = Line::new();
    let (measurement, recording) = match measure(&request, &mut line) {
        Ok(measured) => measured,
        Err(error @ SessionError::NotStarted { .. }) => {
            eprintln!("sweetspot: {error}");
            let SessionError::NotStarted { problem, .. } = error else {
                return Ok(not_run(false));
            };
            return Ok(not_run(problem.kind() == std::io::ErrorKind::NotFound));
        }
        Err(error) => return Err(error.into()),
    };
    // What was measured is shown before it is saved: a full disk then loses nothing that was seen.
    if !on_stdout {
        let mut out = measurement_text(&measurement);
        out.insert(0, '\n');
        print(&out)?;
    }
    for warning in measurement.runs.iter().flat_map(|run| &run.warnings) {
        eprintln!("sweetspot: {warning}");
    }
    if let Some(json) = json {
        let document = measurement_json(&measurement);
        json.write(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    }
    if let Some(csv) = csv {
        csv.write(&measurement_csv(&measurement)?)?;
    }
    if let Some(markdown) = markdown {
        markdown.write(&measurement_markdown(&measurement))?;
    }
    if let Some(samples) = samples {
        samples.write_bytes(&samples_parquet(&recording)?)?;
    }
    let last = measurement.runs.last();
    Ok(passed_on(last.map_or(0, |run| run.exit_code)))
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
        let _ = write!(
            std::io::stderr(),
            "\r\x1b[K{elapsed:.1}  {power}  about {:.0}{items}",
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
