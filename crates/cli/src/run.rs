//! `sweetspot run`, `restore`, and the guard behind them.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use sweetspot_device::Settings;
use sweetspot_report::recommendation;
use sweetspot_session::measure::{MeasureRequest, ProgressPattern};
use sweetspot_session::{
    RunRequest, RunResult, SessionError, left_changed, restore_all, run as run_session,
    run_measured, serve_as_guard,
};
use sweetspot_study::{Configuration, Store};
use sweetspot_workload::Ended;

use crate::NOT_MET;
use crate::args::RunArgs;
use crate::child::{by_signal, passed_on};
use crate::export::print;
use crate::measure::{Documents, not_measured};
use crate::observer::TerminalObserver;

pub fn run(args: RunArgs) -> Result<ExitCode> {
    let documents = Documents::open(&args.export, &None)?;
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
        is_chosen: args.from.is_some(),
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
) -> Result<ExitCode> {
    let measure = MeasureRequest {
        progress,
        keep_stdout: documents.on_stdout(),
        ..MeasureRequest::of(request.command.clone())
    };
    let mut observer = TerminalObserver::new();
    let result = match run_measured(request, &measure, &guard_program()?, &mut observer) {
        Err(error) => return not_measured(error),
        Ok(result) => result,
    };
    let told = result
        .measured
        .map(|(measurement, recording)| documents.tell(&measurement, &recording));
    match (ended(&result.run), told) {
        (Some(code), _) => Ok(code),
        (None, Some(told)) => Ok(told),
        (None, None) => Ok(ExitCode::from(NOT_MET)),
    }
}

fn plain(request: &RunRequest) -> Result<ExitCode> {
    let mut observer = TerminalObserver::new();
    match run_session(request, &guard_program()?, &mut observer) {
        Ok(result) => Ok(ended(&result).unwrap_or(ExitCode::SUCCESS)),
        Err(error) => not_measured(error),
    }
}

/// The code to end with, where not all went well.
fn ended(result: &RunResult) -> Option<ExitCode> {
    match (result.ended, result.restored) {
        (Ended::Code(0), true) => None,
        (Ended::Code(0), false) => Some(ExitCode::from(NOT_MET)),
        (Ended::Code(code), _) => Some(passed_on(code)),
        (Ended::Signal(signal), _) => Some(by_signal(signal)),
    }
}

/// Makes this program serve as guard.
pub fn guard_program() -> Result<impl Fn() -> Command> {
    let program = std::env::current_exe().context("this program cannot find itself")?;
    Ok(move || {
        let mut guard = Command::new(&program);
        guard.arg("guard");
        guard
    })
}

/// Set to anything but nothing or 0.
pub fn read_only() -> bool {
    std::env::var_os("SWEETSPOT_READ_ONLY").is_some_and(|value| !value.is_empty() && value != "0")
}

pub fn guard(socket: &Path) -> Result<ExitCode> {
    serve_as_guard(socket)?;
    Ok(ExitCode::SUCCESS)
}

pub fn restore() -> Result<ExitCode> {
    if read_only() && !left_changed().is_empty() {
        return Err(SessionError::ReadOnly.into());
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
    Ok(ExitCode::from(if met { 0 } else { NOT_MET }))
}

/// Every command says so if something was left changed.
pub fn warn_of_settings_left() {
    for left in left_changed() {
        match left {
            Ok(left) if left.this_boot => eprintln!(
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
