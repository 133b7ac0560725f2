//! `sweetspot run`, `restore`, and the guard behind them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use sweetspot_device::Settings;
use sweetspot_report::recommendation;
use sweetspot_session::measure::{MeasureRequest, ProgressPattern};
use sweetspot_session::{
    DevicesError, RunRequest, SessionError, restore_all, run as run_session, run_measured,
    serve_as_guard, unrestored_devices,
};
use sweetspot_study::{Configuration, Store};
use tracing::level_filters::LevelFilter;

use crate::args::RunArgs;
use crate::documents::{Documents, print};
use crate::exit::Outcome;
use crate::measure::{content, outcome};
use crate::observer::TerminalObserver;

pub fn run(args: RunArgs) -> Result<Outcome> {
    let documents = Documents::open(args.export.asked())?;
    let configuration = match &args.from {
        Some(study) => chosen(study, &args)?,
        None => Configuration::default().with_settings(Settings {
            power_cap: args.power_cap,
            core_clock: args.core_clock,
            memory_clock: args.memory_clock,
        }),
    };
    let is_measured =
        args.measure || args.from.is_some() || args.progress.is_some() || !documents.is_empty();
    let request = RunRequest {
        device: args.device,
        configuration,
        is_from_study: args.from.is_some(),
        read_only: args.read_only || read_only(),
        command: args.cmd,
    };
    match is_measured {
        true => measured(&request, args.progress, &documents),
        false => plain(&request),
    }
}

/// The configuration that a study chose.
fn chosen(study: &Path, args: &RunArgs) -> Result<Configuration> {
    let folder = crate::study::folder(study);
    let store = Store::open(&folder)?;
    let question = args.question.question_of(&store.outline()?.definition)?;
    let study = store.study(None)?;
    let comparison = study.comparison(&question.tariff);
    let choice = study
        .choose(&comparison, &question)
        .with_context(|| format!("the study in {} chooses nothing", folder.display()))?;
    // A study that finds nothing better chooses the default, which then needs nothing to be set.
    let point = match choice.reference_is_as_good() {
        Some(true) => &study.reference,
        _ => &study.points[choice.candidate],
    };
    eprintln!("sweetspot: {}", recommendation(&study, &question));
    let mut configuration = point.configuration.clone();
    if study.device().backend == "sim" && configuration.gpus as usize == study.subject.devices.len()
    {
        // The simulated machine's number of GPUs says nothing about this one's.
        configuration.gpus = 0;
    }
    Ok(configuration)
}

fn measured(
    request: &RunRequest,
    progress: Option<ProgressPattern>,
    documents: &Documents,
) -> Result<Outcome> {
    let measure = MeasureRequest {
        progress,
        keep_stdout: documents.on_stdout(),
        ..MeasureRequest::new(request.command.clone())
    };
    let mut observer = TerminalObserver::new();
    let done = run_measured(request, &measure, &guard_program()?, &mut observer)?;
    let measured = match &done.measured {
        Some((measurement, recording)) => {
            let written = documents.write(content(measurement, recording));
            outcome(measurement, written)
        }
        None => Outcome::met(false),
    };
    Ok(Outcome {
        command: Some(done.run.ended),
        is_restored: done.run.restored,
        ..measured
    })
}

fn plain(request: &RunRequest) -> Result<Outcome> {
    let mut observer = TerminalObserver::new();
    let result = run_session(request, &guard_program()?, &mut observer)?;
    Ok(Outcome {
        command: Some(result.ended),
        is_restored: result.restored,
        ..Outcome::DONE
    })
}

/// Makes this program serve as guard. It logs at the level of this process, given by a flag and not by its environment,
/// because the user's command inherits that from it.
pub fn guard_program() -> Result<impl Fn() -> Command> {
    let program = std::env::current_exe().context("this program cannot find itself")?;
    Ok(move || {
        let mut guard = Command::new(&program);
        guard.arg("guard");
        guard.args(["--log", &LevelFilter::current().to_string()]);
        guard
    })
}

/// Set to anything but nothing or 0.
pub fn read_only() -> bool {
    std::env::var_os("SWEETSPOT_READ_ONLY").is_some_and(|value| !value.is_empty() && value != "0")
}

pub fn guard(socket: &Path) -> Result<Outcome> {
    serve_as_guard(socket)?;
    Ok(Outcome::DONE)
}

pub fn restore() -> Result<Outcome> {
    if read_only() && !unrestored_devices().is_empty() {
        return Err(SessionError::from(DevicesError::ReadOnly).into());
    }
    let lines = restore_all()?;
    if lines.is_empty() {
        print("nothing was left changed\n")?;
    }
    let mut met = true;
    for line in lines {
        match line {
            Ok(line) => print(&format!("{line}\n"))?,
            Err(problem) => {
                eprintln!("sweetspot: {problem}");
                met = false;
            }
        }
    }
    Ok(Outcome::met(met))
}

/// Every command says so if something was left changed.
pub fn warn_of_settings_left() {
    for left in unrestored_devices() {
        match left {
            Ok(left) if left.is_this_boot => eprintln!(
                "sweetspot: {} was left changed by {}: `sweetspot restore` puts it back",
                left.name, left.owner
            ),
            Ok(left) => eprintln!(
                "sweetspot: {} was left changed in an earlier boot of this machine, which undid it: `sweetspot restore` forgets it",
                left.name
            ),
            Err(problem) => eprintln!("sweetspot: {problem}"),
        }
    }
}
