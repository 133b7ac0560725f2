//! `run`: a command at a setting, and everything as before afterwards.

use std::ffi::OsString;

use sweetspot_device::{Descriptor, Domain, Knob, KnobDescriptor, MigSlices, Settings};
use sweetspot_quantity::Quantity;
use sweetspot_study::{Configuration, fill_placeholders, run_environment};
use sweetspot_workload::{
    CommandExit, CommandSpec, GuardProgram, Lease, NoHandler, ProgressReader, RunLimits,
    SignalSource, WorkloadError, run_until_exit,
};

use crate::host::{
    Gpu, all_gpus, descriptors, guard_folder, open_host, reject_lost, select, visible,
};
use crate::measure::{MeasureRequest, Measurement, Recording, measure_on};
use crate::observer::Observer;
use crate::{DevicesError, SessionError};

/// A command and the configuration it is to run at.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// Which GPUs, where the user says.
    pub device: Option<String>,
    /// What is set; a number of GPUs of 0 means all there are.
    pub configuration: Configuration,
    /// Whether a study chose it: the command is then told the configuration, as in the study.
    pub is_chosen: bool,
    /// No write is allowed.
    pub read_only: bool,
    /// The command, with placeholders for the configuration's parameters.
    pub command: Vec<OsString>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// How the command ended, or the signal that ended the run before it.
    pub ended: CommandExit,
    /// Whether every device is as before.
    pub restored: bool,
}

/// A run that was measured.
pub struct MeasuredRunResult {
    /// How it ended.
    pub run: RunResult,
    /// What was measured, where it got so far.
    pub measured: Option<(Measurement, Recording)>,
}

/// Runs the command at its configuration. `guard` makes the program that serves as guard.
pub fn run(
    request: &RunRequest,
    guard: GuardProgram<'_>,
    observer: &mut dyn Observer,
) -> Result<RunResult, SessionError> {
    let gpus = gpus_of(request)?;
    let signals = SignalSource::listen()?;
    let command = CommandSpec {
        environment: environment_of(request.environment(&gpus)),
        ..CommandSpec::new(request.words(&gpus)?)
    };
    let work = |lease: &mut Lease<'_>| {
        let outcome = run_until_exit(
            &command,
            RunLimits::default(),
            Some(lease),
            &signals,
            &mut ProgressReader::without_link(),
            &mut NoHandler,
        );
        Ok(outcome?.ended)
    };
    let mut note = |text: &str| observer.note(text);
    let done = at_settings(request, &gpus, guard, &signals, &mut note, work)?;
    Ok(RunResult {
        ended: done
            .signal
            .map(CommandExit::Signal)
            .or(done.result)
            .unwrap_or(CommandExit::Code(0)),
        restored: done.restored,
    })
}

/// Runs the command at its configuration and measures it.
pub fn run_measured(
    request: &RunRequest,
    measure: &MeasureRequest,
    guard: GuardProgram<'_>,
    observer: &mut dyn Observer,
) -> Result<MeasuredRunResult, SessionError> {
    let nothing_to_set = request.configuration.settings(0) == Settings::default();
    let gpus = match nothing_to_set {
        true => used(request)?,
        false => gpus_of(request)?,
    };
    let measure = MeasureRequest {
        command: request.words(&gpus)?,
        environment: request.environment(&gpus),
        ..measure.clone()
    };
    let signals = SignalSource::listen()?;
    let limits = RunLimits::default();
    if nothing_to_set {
        let measured = measure_on(gpus, &measure, None, &signals, limits, observer)?;
        let run = RunResult {
            ended: end_of(&measured.0),
            restored: true,
        };
        return Ok(MeasuredRunResult {
            run,
            measured: Some(measured),
        });
    }
    let mut notes = Vec::new();
    let work = |lease: &mut Lease<'_>| {
        let again = gpus.iter().map(|gpu| Ok(gpu.reopen()?));
        let again = again.collect::<Result<Vec<_>, SessionError>>()?;
        measure_on(again, &measure, Some(lease), &signals, limits, observer)
    };
    let mut note = |text: &str| notes.push(text.to_owned());
    let done = at_settings(request, &gpus, guard, &signals, &mut note, work);
    for note in &notes {
        observer.note(note);
    }
    let done = done?;
    let of_command = done.result.as_ref().map(|measured| end_of(&measured.0));
    Ok(MeasuredRunResult {
        run: RunResult {
            ended: done
                .signal
                .map(CommandExit::Signal)
                .or(of_command)
                .unwrap_or(CommandExit::Code(0)),
            restored: done.restored,
        },
        measured: done.result,
    })
}

/// How the last run of a measurement ended.
fn end_of(measurement: &Measurement) -> CommandExit {
    let last = measurement.runs.last();
    match last.map(|run| (run.signal, run.exit_code)) {
        Some((Some(signal), _)) => CommandExit::Signal(signal),
        Some((None, code)) => CommandExit::Code(code),
        None => CommandExit::Code(0),
    }
}

impl RunRequest {
    /// The configuration with the number of GPUs that there are.
    fn resolved(&self, gpus: &[Gpu]) -> Configuration {
        Configuration {
            gpus: gpus.len() as u64,
            ..self.configuration.clone()
        }
    }

    fn words(&self, gpus: &[Gpu]) -> Result<Vec<OsString>, SessionError> {
        let configuration = self.resolved(gpus);
        let filled = self.command.iter().map(|word| match word.to_str() {
            Some(text) if self.is_chosen => {
                let word = fill_placeholders(&[text.to_owned()], &configuration)?.concat();
                Ok(word.into())
            }
            _ => Ok(word.clone()),
        });
        filled.collect()
    }

    fn environment(&self, gpus: &[Gpu]) -> Vec<(String, String)> {
        if !self.is_chosen {
            return Vec::new();
        }
        let mut variables = run_environment(&self.resolved(gpus));
        variables.extend(visible(gpus));
        variables
    }
}

/// The GPUs that the run uses, each of which offers what is to be set.
fn gpus_of(request: &RunRequest) -> Result<Vec<Gpu>, SessionError> {
    if request.configuration.settings(0) == Settings::default() {
        return Err(DevicesError::NothingToSet.into());
    }
    if request.read_only {
        return Err(DevicesError::ReadOnly.into());
    }
    let gpus = used(request)?;
    for (index, gpu) in gpus.iter().enumerate() {
        check(gpu.descriptor(), &request.configuration.settings(index))?;
    }
    Ok(gpus)
}

/// The GPUs that the run uses.
fn used(request: &RunRequest) -> Result<Vec<Gpu>, SessionError> {
    let gpus = all_gpus(open_host()?.as_ref())?;
    let mut gpus = select(gpus, request.device.as_deref(), MigSlices::Exclude)?;
    let count = request.configuration.gpus as usize;
    if count > gpus.len() {
        return Err(DevicesError::TooFew {
            wanted: count,
            available: gpus.len(),
        }
        .into());
    }
    if count > 0 {
        gpus.truncate(count);
    }
    reject_lost(&gpus)?;
    Ok(gpus)
}

/// What was done with the GPUs set.
struct DoneAtSettings<T> {
    /// What came of it, where it got so far.
    result: Option<T>,
    /// The signal that came meanwhile.
    signal: Option<i32>,
    /// Whether every device is as before.
    restored: bool,
}

/// Does something with the GPUs set, and puts them back.
fn at_settings<T>(
    request: &RunRequest,
    gpus: &[Gpu],
    guard: GuardProgram<'_>,
    signals: &SignalSource,
    note: &mut dyn FnMut(&str),
    work: impl FnOnce(&mut Lease<'_>) -> Result<T, SessionError>,
) -> Result<DoneAtSettings<T>, SessionError> {
    let folder = guard_folder();
    let lease = Lease::take(&descriptors(gpus), &folder, guard, signals, note);
    let mut lease = match lease {
        Err(WorkloadError::Interrupted(signal)) => {
            return Ok(DoneAtSettings {
                result: None,
                signal: Some(signal),
                restored: true,
            });
        }
        lease => lease?,
    };
    let done = set(&mut lease, gpus, &request.configuration, note).and_then(|()| work(&mut lease));
    let signal = lease.interrupted();
    let restored = lease.release(note);
    let result = match (signal, done) {
        (None, Err(error)) => return Err(error.after_release(&restored)),
        // Whatever a signal made of the work, the signal ended it.
        (_, done) => done.ok(),
    };
    Ok(DoneAtSettings {
        result,
        signal,
        restored: restored?,
    })
}

fn set(
    lease: &mut Lease<'_>,
    gpus: &[Gpu],
    configuration: &Configuration,
    note: &mut dyn FnMut(&str),
) -> Result<(), SessionError> {
    for (index, gpu) in gpus.iter().enumerate() {
        let device = gpu.descriptor();
        if let Some(cap) = lease.set(&device.id, &configuration.settings(index))? {
            note(&format!(
                "{}: asked for {}, the device enforces {} (another limit of the board is lower)",
                device.name, cap.requested, cap.enforced
            ));
        }
    }
    Ok(())
}

fn environment_of(variables: Vec<(String, String)>) -> Vec<(String, OsString)> {
    let variables = variables.into_iter();
    variables
        .map(|(name, value)| (name, value.into()))
        .collect()
}

/// Whether the device offers the setting, before anything is touched.
fn check(device: &Descriptor, settings: &Settings) -> Result<(), DevicesError> {
    let bad = |problem: String| DevicesError::NotSupported {
        device: device.name.clone(),
        problem,
    };
    let missing = |knob: Knob| bad(format!("it has no {knob} that can be set"));
    if let Some(cap) = settings.power_cap {
        match device.knob(Knob::PowerCap) {
            Some(KnobDescriptor::PowerCap(range)) => {
                offered(Knob::PowerCap, cap, &range.domain).map_err(bad)?
            }
            _ => return Err(missing(Knob::PowerCap)),
        }
    }
    if let Some(clock) = settings.core_clock {
        match device.knob(Knob::CoreClock) {
            Some(KnobDescriptor::CoreClock(range)) => {
                offered(Knob::CoreClock, clock, &range.domain).map_err(bad)?
            }
            _ => return Err(missing(Knob::CoreClock)),
        }
    }
    if let Some(clock) = settings.memory_clock {
        match device.knob(Knob::MemoryClock) {
            Some(KnobDescriptor::MemoryClock(range)) => {
                offered(Knob::MemoryClock, clock, &range.domain).map_err(bad)?
            }
            _ => return Err(missing(Knob::MemoryClock)),
        }
    }
    Ok(())
}

fn offered<Q: Quantity + std::fmt::Display>(
    knob: Knob,
    value: Q,
    domain: &Domain<Q>,
) -> Result<(), String> {
    if domain.contains(value) {
        Ok(())
    } else {
        Err(format!(
            "{knob} {value} is not supported: {}",
            domain.describe_nearest(value)
        ))
    }
}
