//! `tune`: the best setting of a training while it runs.

mod choices;
mod error;
mod meter;
mod phases;
mod real;

pub use choices::{ChoiceError, ChoiceStore};
pub use error::TuneError;

use std::ffi::OsString;

use sweetspot_control::tune::{GiveUpReason, TuneRequest, TunedJob, find_unsupported_flag};
use sweetspot_decide::Criteria;
use sweetspot_device::Descriptor;
use sweetspot_quantity::Ratio;
use sweetspot_workload::{CommandExit, GuardProgram};

use crate::SessionError;
use crate::measure::ProgressPattern;
use crate::observer::Observer;
use choices::{Choice, Fingerprint};

/// A command to tune.
#[derive(Clone, Debug)]
pub struct TunedCommand {
    /// Which GPUs, where the user says.
    pub device: Option<String>,
    /// The command.
    pub command: Vec<OsString>,
    /// How progress shows in its output.
    pub progress: Option<ProgressPattern>,
    /// Whether standard output is taken by a document.
    pub keep_stdout: bool,
    /// No write is allowed.
    pub read_only: bool,
    /// Whether what an earlier run chose is not looked at.
    pub fresh: bool,
}

/// A command that was tuned.
#[derive(Clone, Debug)]
pub struct TunedCommandResult {
    /// What tuning found.
    pub job: TunedJob,
    /// How the command ended.
    pub ended: CommandExit,
}

/// Tunes a command on real GPUs. `guard` makes the program that serves as guard; `store` keeps choices across
/// runs, where there is one.
pub fn tune(
    request: &TuneRequest,
    command: &TunedCommand,
    store: Option<&ChoiceStore>,
    guard: GuardProgram<'_>,
    observer: &mut dyn Observer,
) -> Result<TunedCommandResult, SessionError> {
    check(&request.question)?;
    real::tune(request, command, store, guard, observer)
}

/// Whether windows of a running job can answer a question.
fn check(question: &Criteria) -> Result<(), SessionError> {
    match find_unsupported_flag(question) {
        Some((subject, problem)) => Err(TuneError::Question { subject, problem }.into()),
        None => Ok(()),
    }
}

/// What makes a job the same as an earlier one.
fn fingerprint(
    request: &TuneRequest,
    devices: &[Descriptor],
    workload: &str,
    simulated: bool,
) -> Fingerprint {
    Fingerprint {
        gpu: devices[0].name.clone(),
        gpus: devices.len(),
        simulated,
        workload: workload.to_owned(),
        knob: request.knob.to_string(),
        objective: request.question.objective.to_string(),
        limits: request
            .question
            .limits
            .iter()
            .map(ToString::to_string)
            .collect(),
    }
}

/// What an earlier run chose; what is wrong with the store is told, and the job goes on without it.
fn recall(
    store: Option<&ChoiceStore>,
    print: &Fingerprint,
    observer: &mut dyn Observer,
) -> Option<Choice> {
    match store?.recall(print) {
        Ok(choice) => choice,
        Err(problem) => {
            observer.note(&problem.to_string());
            None
        }
    }
}

/// Keeps what a job's last load chose, if it was sure of it; somebody else's cap later does not change that.
fn remember(
    store: Option<&ChoiceStore>,
    print: &Fingerprint,
    job: &TunedJob,
    observer: &mut dyn Observer,
) {
    let Some(store) = store else { return };
    if !matches!(
        job.tuned.gave_up,
        None | Some(GiveUpReason::ChangedExternally(_))
    ) {
        return;
    }
    let last = job.tuned.last_choice().filter(|load| !load.outside_limits);
    let chosen = last.and_then(|load| Some((load.choice?, load.gain?, load.expected_regret)));
    let Some((place, gain, expected_regret)) = chosen else {
        return;
    };
    let choice = Choice {
        settings: job.settings[place],
        gain: gain.get(),
        expected_regret: expected_regret.map(Ratio::get),
        time_s: job.time.get(),
    };
    if let Err(problem) = store.remember(print, &choice) {
        observer.note(&problem.to_string());
    }
}
