//! `sweetspot run`, `sweetspot restore`, and the guard that they start.

use std::path::Path;

use anyhow::{Context, Result, bail};
use sweetspot_device::Settings;
use sweetspot_report::{Line, Text, recommendation};
use sweetspot_session::measure::{MeasureRequest, ProgressSource};
use sweetspot_session::{
    DevicesError, GuardWriter, RunRequest, SessionError, StudyOrigin, restore_all,
    run as run_session, run_measured, serve_as_guard, unrestored_devices,
};
use sweetspot_study::{Configuration, Store};
use sweetspot_workload::{CommandExit, GuardProgram};

use crate::args::{GuardArgs, RunArgs};
use crate::documents::{Documents, print};
use crate::exit::Outcome;
use crate::guard_launcher::GuardLauncher;
use crate::measure::{content, outcome};
use crate::messages::{print_error, print_next_step, print_warning};
use crate::next_step::{after_measured_run, after_unmeasured_run};
use crate::observer::TerminalObserver;

/// Runs `sweetspot run`.
pub fn run(args: RunArgs) -> Result<Outcome> {
    let documents = Documents::open(args.export.requested())?;
    let (configuration, study) = match &args.from {
        Some(study) => {
            let (configuration, origin) = choose_configuration(study, &args)?;
            (configuration, Some(origin))
        }
        None => {
            let settings = Settings {
                power_cap: args.power_cap,
                core_clock: args.core_clock,
                memory_clock: args.memory_clock,
            };
            let configuration = Configuration {
                cpu_power_cap: args.cpu_power_cap,
                ..Configuration::default().with_settings(settings)
            };
            (configuration, None)
        }
    };
    let is_measured =
        args.measure || study.is_some() || args.progress.is_some() || !documents.is_empty();
    let request = RunRequest {
        device: args.device,
        configuration,
        study,
        read_only: args.read_only || is_read_only(),
        command: args.cmd,
    };
    let guard = GuardLauncher::new(&args.sudo)?;
    match is_measured {
        true => run_with_measurement(&request, args.progress, &documents, guard.program()),
        false => run_without_measurement(&request, guard.program()),
    }
}

/// Reads a study and returns its best configuration, for the objective and limits of the flags, and where it was
/// measured.
fn choose_configuration(study: &Path, args: &RunArgs) -> Result<(Configuration, StudyOrigin)> {
    let folder = crate::study::find_folder(study);
    let store = Store::open(&folder)?;
    let criteria = args
        .criteria
        .criteria_for(&store.outline()?.definition, args.prefer)?;
    let study = store.study(None)?;
    let comparison = study.comparison(&criteria.tariff);
    let choice = study.choose(&comparison, &criteria).with_context(|| {
        format!(
            "no setting of the study in {} can be recommended",
            folder.display()
        )
    })?;
    if choice.against_reference.is_none() {
        bail!(
            "the study in {0} recommends no setting, because its reference has no result to compare with: measure the reference with `sweetspot sweep --resume {0} --retry-failed`",
            folder.display()
        );
    }
    // If nothing is better than the reference, no setting has to be changed.
    let point = match choice.reference_is_as_good() {
        Some(true) => &study.reference,
        _ => &study.points[choice.candidate],
    };
    let mut configuration = point.configuration.clone();
    let measured = study.subject.devices.iter();
    let origin = StudyOrigin {
        devices: measured
            .take(configuration.gpus as usize)
            .cloned()
            .collect(),
        recommendation: recommendation(&study, &criteria),
        accepts_other_gpus: args.force_from,
    };
    if study.device().backend == "sim" && configuration.gpus as usize == study.subject.devices.len()
    {
        // The number of simulated GPUs says nothing about the number of GPUs of this machine.
        configuration.gpus = 0;
    }
    Ok((configuration, origin))
}

/// Runs the user's command at the requested settings, and measures it.
fn run_with_measurement(
    request: &RunRequest,
    progress: Option<ProgressSource>,
    documents: &Documents,
    guard: GuardProgram<'_>,
) -> Result<Outcome> {
    let measure = MeasureRequest {
        progress: progress.unwrap_or(ProgressSource::Automatic),
        keep_stdout: documents.on_stdout(),
        ..MeasureRequest::new(request.command.clone())
    };
    let mut observer = TerminalObserver::new();
    let done = run_measured(request, &measure, guard, &mut observer)?;
    let measured = match &done.measured {
        Some((measurement, recording)) => {
            let next = after_measured_run(measurement);
            let written = documents.write(content(measurement, recording).next_step(next));
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

/// Runs the user's command at the requested settings, without measuring it.
fn run_without_measurement(request: &RunRequest, guard: GuardProgram<'_>) -> Result<Outcome> {
    let mut observer = TerminalObserver::new();
    let result = run_session(request, guard, &mut observer)?;
    if result.ended == CommandExit::Code(0) {
        print_next_step(after_unmeasured_run());
    }
    Ok(Outcome {
        command: Some(result.ended),
        is_restored: result.restored,
        ..Outcome::DONE
    })
}

/// Whether SWEETSPOT_READ_ONLY is set to anything but an empty text or 0.
pub fn is_read_only() -> bool {
    std::env::var_os("SWEETSPOT_READ_ONLY").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Runs the guard process, which restores the devices when the program that started it ends.
pub fn serve_guard(args: GuardArgs) -> Result<Outcome> {
    let writer = match (args.service, args.root_socket) {
        (Some(socket), _) => GuardWriter::Service(socket),
        (None, Some(socket)) => GuardWriter::Root(socket),
        (None, None) => GuardWriter::Own,
    };
    serve_as_guard(writer)?;
    Ok(Outcome::DONE)
}

/// Runs `sweetspot restore`.
pub fn restore() -> Result<Outcome> {
    if is_read_only() && !unrestored_devices().is_empty() {
        return Err(SessionError::from(DevicesError::ReadOnly).into());
    }
    let lines = restore_all()?;
    if lines.is_empty() {
        print("nothing to restore: no setting was left changed\n")?;
    }
    let mut is_restored = true;
    for line in lines {
        match line {
            Ok(line) => print(format!("{line}\n"))?,
            Err(problem) => {
                print_error(&problem.to_string());
                is_restored = false;
            }
        }
    }
    let next = Line::with_command("The settings of the GPUs:", "sweetspot devices");
    print(Text::empty_line() + next)?;
    Ok(Outcome::met(is_restored))
}

/// Warns about settings that an earlier command left changed.
pub fn warn_about_changed_settings() {
    for left in unrestored_devices() {
        match left {
            Ok(left) if left.is_this_boot => print_warning(&format!(
                "{} was left changed by {}: `sweetspot restore` restores it",
                left.name, left.owner
            )),
            Ok(left) => print_warning(&format!(
                "{} was left changed before this machine was restarted, which reset it: `sweetspot restore` removes this message",
                left.name
            )),
            Err(problem) => print_warning(&problem.to_string()),
        }
    }
}
