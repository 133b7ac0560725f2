//! `sweetspot hold` and `sweetspot hold set`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use sweetspot_control::hold::{Goal, Mode};
use sweetspot_device::SensorKind;
use sweetspot_quantity::Seconds;
use sweetspot_report::{figure_svg, held_figure, held_json, held_text};
use sweetspot_session::hold::{
    HoldKnob, HoldRequest, HoldResult, SetError, hold, set_cap, usual_batches,
};
use sweetspot_workload::Ended;

use crate::NOT_MET;
use crate::args::{HoldArgs, HoldCommand, KnobName, ModeName, ObjectiveName, SensorName};
use crate::child::{by_signal, passed_on};
use crate::export::{Document, is_closed_pipe, print, refuse_twins};
use crate::measure::not_measured;
use crate::observer::TerminalObserver;
use crate::run::{guard_program, read_only};

/// A program takes its time to load: longer than it takes to ask once it serves.
const PATIENCE: Seconds = Seconds::new(60.0);

pub fn run(args: HoldArgs) -> Result<ExitCode> {
    if let Some(HoldCommand::Set { cap, pid }) = args.command {
        return match set_cap(cap, pid) {
            Ok(answer) => {
                print(&format!("{answer}\n"))?;
                Ok(ExitCode::SUCCESS)
            }
            Err(problem @ SetError::NoAnswer { .. }) => {
                eprintln!("sweetspot: {problem}");
                Ok(ExitCode::from(NOT_MET))
            }
            Err(problem) => Err(problem.into()),
        };
    }
    let documents = Documents::open(&args)?;
    let request = request(args, documents.on_stdout());
    match hold(&request, &guard_program()?, &mut TerminalObserver::new()) {
        Ok(held) => documents.tell(&held),
        Err(error) => not_measured(error),
    }
}

fn request(args: HoldArgs, keep_stdout: bool) -> HoldRequest {
    HoldRequest {
        device: args.device,
        command: args.cmd,
        below: args.below,
        cap_file: args.cap_file,
        knob: match args.knob {
            KnobName::Batch => HoldKnob::Batch,
            KnobName::CoreClock => HoldKnob::CoreClock,
            KnobName::PowerCap => HoldKnob::PowerCap,
            KnobName::Joint => HoldKnob::Joint,
        },
        mode: args.mode.map(|mode| match mode {
            ModeName::Robust => Mode::Robust,
            ModeName::Paper => Mode::Paper,
            ModeName::Text => Mode::Text,
            ModeName::Windowed => Mode::Windowed,
            ModeName::Dvfs => Mode::Dvfs,
            ModeName::StepUp => Mode::StepUp,
            ModeName::Joint => Mode::Joint,
        }),
        goal: match args.objective {
            ObjectiveName::Throughput => Goal::Throughput,
            ObjectiveName::EnergyPerItem => Goal::EnergyPerItem,
        },
        batches: args.batches.map_or_else(usual_batches, |sizes| sizes.0),
        fixed_batch: args.fixed_batch,
        latency_p99: args.latency_p99,
        alpha: args.alpha,
        window: args.window,
        settle: args.settle,
        expiry: args.expiry,
        probe: args.probe,
        patience: Some(args.patience.unwrap_or(PATIENCE)),
        sensor: args.sensor.map(|sensor| match sensor {
            SensorName::Buffer => SensorKind::BufferedPower,
            SensorName::Instant => SensorKind::InstantPower,
            SensorName::Average => SensorKind::AveragePower,
        }),
        read_only: args.read_only || read_only(),
        keep_stdout,
    }
}

/// Where the result goes.
struct Documents {
    json: Option<Document>,
    svg: Option<Document>,
}

impl Documents {
    fn open(args: &HoldArgs) -> Result<Self> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(Document::open).transpose();
        let documents = Self {
            json: open(&args.export_json)?,
            svg: open(&args.export_svg)?,
        };
        refuse_twins(&documents.all())?;
        Ok(documents)
    }

    fn all(&self) -> Vec<&Document> {
        [&self.json, &self.svg].into_iter().flatten().collect()
    }

    fn on_stdout(&self) -> bool {
        self.all().iter().any(|document| document.is_stdout())
    }

    /// What came of it is shown before it is saved, and each document is tried.
    fn tell(&self, held: &HoldResult) -> Result<ExitCode> {
        let mut is_written = true;
        let mut note = |result: Result<()>| match result {
            Err(error) if !is_closed_pipe(&error) => {
                eprintln!("sweetspot: {error:#}");
                is_written = false;
            }
            _ => {}
        };
        if !self.on_stdout() {
            note(print(&format!("\n{}", held_text(held))));
        }
        if let Some(json) = &self.json {
            let text = serde_json::to_string_pretty(&held_json(held))?;
            note(json.write(&(text + "\n")));
        }
        if let Some(svg) = &self.svg {
            note(svg.write(&figure_svg(&held_figure(held))));
        }
        Ok(match held.ended {
            Ended::Signal(signal) => by_signal(signal),
            Ended::Code(code) if code != 0 => passed_on(code),
            Ended::Code(_) if held.kept.is_met() != Some(false) && held.restored && is_written => {
                ExitCode::SUCCESS
            }
            Ended::Code(_) => ExitCode::from(NOT_MET),
        })
    }
}
