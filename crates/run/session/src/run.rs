//! `run`: runs a command with given device settings and parameters, and restores the devices afterwards.

use std::cell::RefCell;
use std::ffi::OsString;

use sweetspot_device::{AppliedKnob, Descriptor, MigSlices, Settings, Shortfall};
use sweetspot_quantity::Watts;
use sweetspot_study::{Configuration, fill_placeholders, run_environment};
use sweetspot_workload::{
    CommandExit, CommandSpec, GuardProgram, Lease, ProgressReader, RunLimits, SignalSource,
    WorkloadError, run_until_exit,
};

use crate::host::{
    Gpu, all_gpus, descriptors_of, open_host, packages_for, reject_lost, select,
    visibility_variables,
};
use crate::measure::{MeasureRequest, Measurement, Recording, measure_on};
use crate::nearest_settings::{changed_clocks, nearest_settings};
use crate::observer::Observer;
use crate::settings_watch::SettingsWatch;
use crate::{DevicesError, SessionError, StudyOrigin};

/// A request to run a command at a configuration.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The GPUs, by index or UUID; all visible GPUs if `None`.
    pub device: Option<String>,
    /// The configuration; a GPU count of 0 means all selected GPUs.
    pub configuration: Configuration,
    /// The study that the configuration comes from, if any. The command then receives the configuration in environment
    /// variables and placeholders, as it did in the study.
    pub study: Option<StudyOrigin>,
    /// Whether writes to the devices are forbidden.
    pub read_only: bool,
    /// The command, which may contain placeholders for the configuration's parameters.
    pub command: Vec<OsString>,
}

/// How a run of `run` ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// How the command ended, or the signal that ended the run.
    pub ended: CommandExit,
    /// Whether the earlier settings of every device were restored.
    pub restored: bool,
}

/// The result of `run` with a measurement.
pub struct MeasuredRunResult {
    /// How the run ended: its exit, and whether settings were restored.
    pub run: RunResult,
    /// The measurement and its readings; `None` if the run ended before anything was measured.
    pub measured: Option<(Measurement, Recording)>,
}

/// Runs the command at its configuration. `guard` creates the command that starts the guard process.
pub fn run(
    request: &RunRequest,
    guard: GuardProgram<'_>,
    observer: &mut dyn Observer,
) -> Result<RunResult, SessionError> {
    let (gpus, packages) = settable_devices(request)?;
    request.announce(&gpus, observer);
    let signals = SignalSource::listen()?;
    let variables = request.environment(&gpus).into_iter();
    let command = CommandSpec {
        environment: variables
            .map(|(name, value)| (name, value.into()))
            .collect(),
        ..CommandSpec::new(request.command_words(&gpus)?)
    };
    let observer = RefCell::new(observer);
    let work = |lease: &mut Lease<'_>| {
        let outcome = run_until_exit(
            &command,
            RunLimits::default(),
            Some(lease),
            &signals,
            &mut ProgressReader::without_link(),
            &mut SettingsWatch::new(gpus.iter().chain(&packages), &observer),
        );
        Ok(outcome?.ended)
    };
    let mut note = |text: &str| observer.borrow_mut().note(text);
    let devices = (&gpus[..], &packages[..]);
    let done = with_settings(request, devices, guard, &signals, &mut note, work)?;
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
    let nothing_to_set = !request.configuration.sets_devices();
    let (gpus, packages) = match nothing_to_set {
        true => (requested_gpus(request)?, Vec::new()),
        false => {
            let (gpus, packages) = settable_devices(request)?;
            match gpus.is_empty() {
                true => (requested_gpus(request)?, packages),
                false => (gpus, packages),
            }
        }
    };
    request.announce(&gpus, observer);
    let measure = MeasureRequest {
        command: request.command_words(&gpus)?,
        environment: request.environment(&gpus),
        ..measure.clone()
    };
    let signals = SignalSource::listen()?;
    let limits = RunLimits::default();
    if nothing_to_set {
        let measured = measure_on(gpus, &measure, None, &signals, limits, observer)?;
        let run = RunResult {
            ended: last_exit(&measured.0),
            restored: true,
        };
        return Ok(MeasuredRunResult {
            run,
            measured: Some(measured),
        });
    }
    let mut notes = Vec::new();
    let work = |lease: &mut Lease<'_>| {
        let reopened = gpus.iter().map(|gpu| Ok(gpu.reopen()?));
        let reopened = reopened.collect::<Result<Vec<_>, SessionError>>()?;
        measure_on(reopened, &measure, Some(lease), &signals, limits, observer)
    };
    let mut note = |text: &str| notes.push(text.to_owned());
    let devices = (&gpus[..], &packages[..]);
    let done = with_settings(request, devices, guard, &signals, &mut note, work);
    for note in &notes {
        observer.note(note);
    }
    let done = done?;
    let command_exit = done.result.as_ref().map(|measured| last_exit(&measured.0));
    Ok(MeasuredRunResult {
        run: RunResult {
            ended: done
                .signal
                .map(CommandExit::Signal)
                .or(command_exit)
                .unwrap_or(CommandExit::Code(0)),
            restored: done.restored,
        },
        measured: done.result,
    })
}

/// How the last run of a measurement ended.
fn last_exit(measurement: &Measurement) -> CommandExit {
    let last = measurement.runs.last();
    match last.map(|run| (run.signal, run.exit_code)) {
        Some((Some(signal), _)) => CommandExit::Signal(signal),
        Some((None, code)) => CommandExit::Code(code),
        None => CommandExit::Code(0),
    }
}

impl RunRequest {
    /// The configuration, with a GPU count of 0 replaced by the number of `gpus`.
    fn resolved(&self, gpus: &[Gpu]) -> Configuration {
        Configuration {
            gpus: gpus.len() as u64,
            ..self.configuration.clone()
        }
    }

    /// Tells the user what the study recommends and on which GPU that was measured.
    fn announce(&self, gpus: &[Gpu], observer: &mut dyn Observer) {
        if let Some(study) = &self.study {
            observer.note(&study.announcement(&indexed(gpus)));
        }
    }

    /// The words of the command, with their placeholders filled from the configuration.
    fn command_words(&self, gpus: &[Gpu]) -> Result<Vec<OsString>, SessionError> {
        let configuration = self.resolved(gpus);
        let filled = self.command.iter().map(|word| match word.to_str() {
            Some(text) if self.study.is_some() => {
                let word = fill_placeholders(&[text.to_owned()], &configuration)?.concat();
                Ok(word.into())
            }
            _ => Ok(word.clone()),
        });
        filled.collect()
    }

    /// The environment variables for the command: the visible GPUs and the configuration.
    fn environment(&self, gpus: &[Gpu]) -> Vec<(String, String)> {
        if self.study.is_none() {
            return Vec::new();
        }
        let mut variables = run_environment(&self.resolved(gpus));
        variables.extend(visibility_variables(gpus));
        variables
    }
}

/// The GPUs and the processor packages that the run sets; an error if one of them does not support the configuration.
/// A run that caps the processors alone needs no GPU.
fn settable_devices(request: &RunRequest) -> Result<(Vec<Gpu>, Vec<Gpu>), SessionError> {
    let configuration = &request.configuration;
    if !configuration.sets_devices() {
        return Err(DevicesError::NothingToSet.into());
    }
    if request.read_only {
        return Err(DevicesError::ReadOnly.into());
    }
    let packages = packages_for(&configuration.package_settings())?;
    let sets_gpus = configuration.settings(0) != Settings::default();
    let gpus = match sets_gpus || request.device.is_some() || request.study.is_some() {
        true => requested_gpus(request)?,
        false => Vec::new(),
    };
    for (index, gpu) in gpus.iter().enumerate() {
        nearest_settings(gpu.descriptor(), &configuration.settings(index))?;
    }
    Ok((gpus, packages))
}

/// The GPUs that the run uses: as many of the selected ones as the configuration says.
fn requested_gpus(request: &RunRequest) -> Result<Vec<Gpu>, SessionError> {
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
    if let Some(study) = &request.study {
        study.reject_other_gpus(&indexed(&gpus))?;
    }
    Ok(gpus)
}

/// The descriptors of GPUs, each with the GPU's index on this machine.
fn indexed(gpus: &[Gpu]) -> Vec<(u32, &Descriptor)> {
    let gpus = gpus.iter();
    gpus.map(|gpu| (gpu.index(), gpu.descriptor())).collect()
}

/// The outcome of work that was done on leased GPUs.
struct LeasedOutcome<T> {
    /// The result of the work; `None` if a signal ended the work early.
    result: Option<T>,
    /// The signal that arrived during the work, if any.
    signal: Option<i32>,
    /// Whether the earlier settings of every device were restored.
    restored: bool,
}

/// Leases the GPUs and the processor packages, applies their settings, does the work, and restores them.
fn with_settings<T>(
    request: &RunRequest,
    (gpus, packages): (&[Gpu], &[Gpu]),
    guard: GuardProgram<'_>,
    signals: &SignalSource,
    note: &mut dyn FnMut(&str),
    work: impl FnOnce(&mut Lease<'_>) -> Result<T, SessionError>,
) -> Result<LeasedOutcome<T>, SessionError> {
    let configuration = &request.configuration;
    // A GPU that is only selected, not set, needs nobody's permission.
    let set = gpus.iter().enumerate();
    let set = set.map(|(index, gpu)| (gpu, configuration.settings(index)));
    let set = set.filter(|(_, settings)| *settings != Settings::default());
    let package_settings = configuration.package_settings();
    let set = set.chain(packages.iter().map(|package| (package, package_settings)));
    let set: Vec<(&Gpu, Settings)> = set.collect();
    let devices = descriptors_of(set.iter().map(|(device, _)| *device));
    let lease = Lease::take(&devices, guard, signals, note);
    let mut lease = match lease {
        Err(WorkloadError::Interrupted(signal)) => {
            return Ok(LeasedOutcome {
                result: None,
                signal: Some(signal),
                restored: true,
            });
        }
        lease => lease?,
    };
    let done = set_devices(&mut lease, &set, note).and_then(|()| work(&mut lease));
    let signal = lease.interrupted();
    let restored = lease.release(note);
    let result = match (signal, done) {
        (None, Err(error)) => return Err(error.after_release(&restored)),
        // A signal may cause other errors, which are not worth reporting.
        (_, done) => done.ok(),
    };
    Ok(LeasedOutcome {
        result,
        signal,
        restored: restored?,
    })
}

/// Why a device enforces a lower cap than requested, in words for the user.
pub(crate) fn shortfall_reason(cap: &AppliedKnob<Watts>) -> &'static str {
    match cap.shortfall {
        Some(Shortfall::Ceiling) => "a budget or the scheduler allows no more",
        _ => "the board has another, lower limit",
    }
}

/// Applies settings to devices; clocks between two levels, and caps that a board replaces by lower ones, are
/// reported.
fn set_devices(
    lease: &mut Lease<'_>,
    devices: &[(&Gpu, Settings)],
    note: &mut dyn FnMut(&str),
) -> Result<(), SessionError> {
    for (device, wanted) in devices {
        let device = device.descriptor();
        let settings = nearest_settings(device, wanted)?;
        for (knob, from, to) in changed_clocks(wanted, &settings) {
            note(&format!(
                "{}: the {knob} is set to {to}, the nearest to {from} that the GPU has",
                device.name
            ));
        }
        if let Some(cap) = lease.set(&device.id, &settings)? {
            note(&format!(
                "{}: the requested cap is {}, but the device enforces {} ({})",
                device.name,
                cap.requested,
                cap.enforced,
                shortfall_reason(&cap)
            ));
        }
    }
    Ok(())
}
