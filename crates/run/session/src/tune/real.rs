//! `tune` on real GPUs: runs a command on leased GPUs and tunes their settings while it runs.

use std::sync::Arc;

use sweetspot_control::tune::{
    EarlierChoice, JobLength, TuneConfig, TuneRequest, TuneSpace, TunedJob, Tuner,
};
use sweetspot_device::{Descriptor, MigSlices, MonotonicClock};
use sweetspot_measure::{MethodChoice, Sampler};
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_workload::{
    CommandExit, CommandSpec, GuardProgram, Lease, ProgressReader, RunLimits, RunOutcome,
    SignalSource, WorkloadError, run_until_exit,
};

use super::choices::Choice;
use super::meter::EnergyMeter;
use super::tune_loop::{PointSetter, TuneLoop, TuneLoopEnd};
use super::{ChoiceStore, TunedCommand, TunedCommandResult, fingerprint, recall, remember};
use crate::SessionError;
use crate::host::{
    DevicesError, Gpu, descriptors, reopen_for_reading, select_working, visibility_variables,
};
use crate::measure::{Machine, MeasureRequest};
use crate::observer::Observer;

/// Leases the GPUs, runs the command, tunes the GPUs' settings meanwhile and restores them.
pub fn tune(
    request: &TuneRequest,
    command: &TunedCommand,
    store: Option<&ChoiceStore>,
    guard: GuardProgram<'_>,
    observer: &mut dyn Observer,
) -> Result<TunedCommandResult, SessionError> {
    if command.read_only {
        return Err(DevicesError::ReadOnly.into());
    }
    let gpus = select_working(command.device.as_deref(), MigSlices::Exclude)?;
    let devices = descriptors(&gpus);
    let space = TuneSpace::new(&devices, request.knob)?;
    let words = command.command.iter().map(|word| word.to_string_lossy());
    let workload = words.collect::<Vec<_>>().join(" ");
    let is_simulated = Machine::detect(None).simulated;
    let fingerprint = fingerprint(request, &devices, &workload, is_simulated);
    let remembered = match command.fresh {
        true => None,
        false => recall(store, &fingerprint, observer),
    };
    let config = tuner_config(request, &devices, &space, remembered);
    let signals = SignalSource::listen()?;
    let mut note = |text: &str| observer.note(text);
    let mut lease = Lease::take(&devices, guard, &signals, &mut note)?;
    let run = run_tuned(
        Tuner::new(config),
        command,
        &space,
        &gpus,
        &mut lease,
        &signals,
        observer,
    );
    let signal = lease.interrupted();
    let mut note = |text: &str| observer.note(text);
    let restored = lease.release(&mut note);
    let run = match (signal, run) {
        (Some(signal), Err(_)) => return Err(WorkloadError::Interrupted(signal).into()),
        (_, run) => run.map_err(|problem| problem.after_release(&restored))?,
    };
    let ended = run.outcome.ended;
    let job = TunedJob {
        workload,
        knob: request.knob,
        criteria: request.criteria.clone(),
        strategy: request.strategy,
        settings: space.settings.clone(),
        labels: space.labels.clone(),
        reference: space.space.reference(),
        time: (run.outcome.exited - run.end.began).max(Seconds::ZERO),
        tuned: run.end.tuner.finish(),
        energy: run.end.energy,
        items: run.items,
        begins: vec![Seconds::ZERO],
        power: run.end.power,
        restored: restored?,
        devices,
    };
    if signal.is_none() && ended == CommandExit::Code(0) {
        remember(store, &fingerprint, &job, observer);
    }
    Ok(TunedCommandResult {
        job,
        ended: match signal {
            Some(signal) => CommandExit::Signal(signal),
            None => ended,
        },
    })
}

/// The tuner's configuration, which includes the run time and the settings of an earlier run of the same job.
fn tuner_config(
    request: &TuneRequest,
    devices: &[Descriptor],
    space: &TuneSpace,
    remembered: Option<Choice>,
) -> TuneConfig {
    let length = match &remembered {
        Some(choice) => JobLength::Time(Seconds::new(choice.time_s)),
        None => JobLength::Unknown,
    };
    let earlier = remembered.map(|choice| EarlierChoice {
        settings: choice.settings,
        gain: Ratio::new(choice.gain),
        expected_regret: choice.expected_regret.map(Ratio::new),
    });
    request.tuner_config(devices, space, length, earlier)
}

/// The results of a tuned command that has exited.
struct FinishedRun {
    outcome: RunOutcome,
    end: TuneLoopEnd,
    items: Option<f64>,
}

/// Runs the command; the tuner changes the GPUs' settings meanwhile.
fn run_tuned(
    tuner: Tuner,
    command: &TunedCommand,
    space: &TuneSpace,
    gpus: &[Gpu],
    lease: &mut Lease<'_>,
    signals: &SignalSource,
    observer: &mut dyn Observer,
) -> Result<FinishedRun, SessionError> {
    let mut setter = PointSetter::new(space, gpus);
    // If a device cannot be set at all, the command is not started.
    setter.set(lease, space.space.reference())?;
    let devices = reopen_for_reading(gpus)?;
    let sampler = Sampler::start(devices, MethodChoice::Auto, Arc::new(MonotonicClock))?;
    let mut reader = ProgressReader::with_link()?;
    let meter = EnergyMeter::start(sampler)?;
    let mut tune_loop = TuneLoop::new(tuner, setter, meter, observer);
    let outcome = run_until_exit(
        &command_spec(command, gpus),
        RunLimits::default(),
        Some(lease),
        signals,
        &mut reader,
        &mut tune_loop,
    )?;
    Ok(FinishedRun {
        outcome,
        end: tune_loop.finish(),
        items: reader.counter().items(),
    })
}

/// How the command is started: on the selected GPUs, and with its output where the request wants it.
fn command_spec(command: &TunedCommand, gpus: &[Gpu]) -> CommandSpec {
    let request = MeasureRequest {
        progress: command.progress.clone(),
        keep_stdout: command.keep_stdout,
        // The command must use the GPUs that are tuned.
        environment: match command.device {
            Some(_) => visibility_variables(gpus).to_vec(),
            None => Vec::new(),
        },
        ..MeasureRequest::new(command.command.clone())
    };
    request.command_spec()
}
