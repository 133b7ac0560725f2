//! `tune`: finds the best setting of a training job while it runs.

mod choices;
mod error;
mod meter;
mod phases;
mod real;
mod tune_loop;

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
    /// The GPUs, by index or UUID; all visible GPUs if `None`.
    pub device: Option<String>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// The pattern that finds progress in the command's output.
    pub progress: Option<ProgressPattern>,
    /// Whether a document takes standard output, so that the command's output goes to standard error.
    pub keep_stdout: bool,
    /// Whether writes to the devices are forbidden.
    pub read_only: bool,
    /// Whether the choice of an earlier run is ignored.
    pub fresh: bool,
}

/// The result of a tuned command.
#[derive(Clone, Debug)]
pub struct TunedCommandResult {
    /// The tuned job and the settings that were chosen.
    pub job: TunedJob,
    /// How the command ended.
    pub ended: CommandExit,
}

/// Tunes a command on real GPUs. `guard` makes the program that serves as guard; `store` holds the choices of
/// earlier runs.
pub fn tune(
    request: &TuneRequest,
    command: &TunedCommand,
    store: Option<&ChoiceStore>,
    guard: GuardProgram<'_>,
    observer: &mut dyn Observer,
) -> Result<TunedCommandResult, SessionError> {
    check_criteria(&request.question)?;
    real::tune(request, command, store, guard, observer)
}

/// Rejects criteria that cannot be evaluated while a job runs.
fn check_criteria(criteria: &Criteria) -> Result<(), SessionError> {
    match find_unsupported_flag(criteria) {
        Some((subject, problem)) => Err(TuneError::Criteria { subject, problem }.into()),
        None => Ok(()),
    }
}

/// The properties by which an earlier run of the same job is found.
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

/// The choice of an earlier run. A problem with the store is reported, and the job runs without a choice.
fn recall(
    store: Option<&ChoiceStore>,
    fingerprint: &Fingerprint,
    observer: &mut dyn Observer,
) -> Option<Choice> {
    match store?.recall(fingerprint) {
        Ok(choice) => choice,
        Err(problem) => {
            observer.note(&problem.to_string());
            None
        }
    }
}

/// Stores the choice of a job's last load if the tuner settled on it, even where another program changed a cap later.
fn remember(
    store: Option<&ChoiceStore>,
    fingerprint: &Fingerprint,
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
    let Some((point, gain, expected_regret)) = chosen else {
        return;
    };
    let choice = Choice {
        settings: job.settings[point],
        gain: gain.get(),
        expected_regret: expected_regret.map(Ratio::get),
        time_s: job.time.get(),
    };
    if let Err(problem) = store.remember(fingerprint, &choice) {
        observer.note(&problem.to_string());
    }
}
