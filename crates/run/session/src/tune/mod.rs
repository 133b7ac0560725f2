//! `tune`: finds the best setting of a training job while it runs.

mod choices;
mod error;
mod limits;
mod meter;
mod phases;
mod point_setter;
mod ranks;
mod real;
mod tune_loop;

pub use choices::{ChoiceError, ChoiceQuery, ChoiceStore};
pub use error::TuneError;
pub(crate) use ranks::RankJoin;

use std::ffi::OsString;

use sweetspot_control::tune::{TuneRequest, TunedJob, find_unsupported_criterion};
use sweetspot_decide::Criteria;
use sweetspot_device::Descriptor;
use sweetspot_quantity::Ratio;
use sweetspot_workload::{CommandExit, GuardProgram, MetricsSource};

use crate::SessionError;
use crate::measure::ProgressSource;
use crate::observer::Observer;
use choices::{Choice, Fingerprint};

/// A command to tune.
#[derive(Clone, Debug)]
pub struct TunedCommand {
    /// The GPUs, by index or UUID; all visible GPUs if `None`.
    pub device: Option<String>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Where progress is found in the command's output.
    pub progress: ProgressSource,
    /// The metrics page of the server that the command is, or that it uses; progress is then read there.
    pub metrics: Option<MetricsSource>,
    /// Whether standard output is reserved for the result document; the command's output then goes to standard error.
    pub keep_stdout: bool,
    /// Whether writes to the devices are forbidden.
    pub read_only: bool,
    /// Whether to ignore the settings that an earlier run of the same job chose.
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

/// Tunes a command on real GPUs. `guard` creates the command that starts the guard process; `store` contains
/// the settings that earlier runs chose.
pub fn tune(
    request: &TuneRequest,
    command: &TunedCommand,
    store: Option<&ChoiceStore>,
    guard: GuardProgram<'_>,
    observer: &mut dyn Observer,
) -> Result<TunedCommandResult, SessionError> {
    check_criteria(&request.criteria)?;
    real::tune(request, command, store, guard, observer)
}

/// Rejects an objective or a limit that cannot be evaluated while a job runs.
fn check_criteria(criteria: &Criteria) -> Result<(), SessionError> {
    match find_unsupported_criterion(criteria) {
        Some((subject, problem)) => Err(TuneError::Criteria { subject, problem }.into()),
        None => Ok(()),
    }
}

/// The properties that identify the job, to find the choice of an earlier run.
fn fingerprint(
    request: &TuneRequest,
    devices: &[Descriptor],
    workload: &str,
    simulated: bool,
) -> Fingerprint {
    let mut names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    names.dedup();
    Fingerprint {
        gpu: names.join(", "),
        gpus: devices.len(),
        simulated,
        workload: workload.to_owned(),
        knob: request.knob.to_string(),
        objective: request.criteria.objective.to_string(),
        limits: request
            .criteria
            .limits
            .iter()
            .map(ToString::to_string)
            .collect(),
    }
}

/// The settings that an earlier run of the same job chose, if any. If they cannot be read, the user is
/// warned.
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

/// Stores the settings chosen for the job's last load (a stretch of similar work), unless the tuner gave up.
/// They are stored even if another program changed a cap.
fn remember(
    store: Option<&ChoiceStore>,
    fingerprint: &Fingerprint,
    job: &TunedJob,
    observer: &mut dyn Observer,
) {
    let (Some(store), Some(chosen)) = (store, job.lasting_choice()) else {
        return;
    };
    let choice = Choice {
        settings: chosen.settings,
        each: chosen.each,
        gain: chosen.gain.get(),
        expected_regret: chosen.expected_regret.map(Ratio::get),
        time_s: job.time.get(),
    };
    if let Err(problem) = store.remember(fingerprint, &choice) {
        observer.note(&problem.to_string());
    }
}
