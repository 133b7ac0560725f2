//! `calibrate`: fits the gain and offset of a GPU's or the host's own sensors against a meter.

mod calibration;
mod date;
mod file;

pub use calibration::{Calibration, MeterScope};
pub(crate) use calibration::{calibration_of, range_warnings};
pub use file::{CalibrationFile, load_calibrations};

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sweetspot_device::{Descriptor, Device, MeterTrace, MigSlices, MonotonicClock};
use sweetspot_measure::math::meter::{
    CalibrationError, CalibrationFit, CalibrationPower, FastPower, calibrate as fit_line,
};
use sweetspot_measure::math::{EnergyEstimator, Span};
use sweetspot_measure::{DeviceRecording, MethodChoice, Sampler};
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_workload::{CommandExit, RunLimits, SignalSource};

use crate::SessionError;
use crate::host::{Gpu, all_gpus, descriptors, host_energy_parts, open_host, reject_lost, select};
use crate::measure::{MeasureRequest, RunContext};
use crate::node::NodeMeters;
use crate::observer::Observer;

/// A request to calibrate a sensor.
#[derive(Clone, Debug)]
pub struct CalibrateRequest {
    /// The meter, by name or spec.
    pub meter: String,
    /// What the meter measures.
    pub scope: MeterScope,
    /// The GPU, by index or UUID; the only one if `None`.
    pub device: Option<String>,
    /// Whether the energy counters of the host are calibrated in place of a GPU's sensor.
    pub host: bool,
    /// The name of the calibration.
    pub name: Option<String>,
    /// Whether a calibration of this name is replaced.
    pub replace: bool,
    /// The command that makes the load; empty to observe whatever runs.
    pub command: Vec<OsString>,
    /// How long to observe without a command.
    pub time: Seconds,
}

/// The result of a calibration.
#[derive(Clone, Debug)]
pub struct CalibrateResult {
    /// The calibration; it is stored already if the command succeeded.
    pub calibration: Calibration,
    /// How it was fitted.
    pub fit: CalibrationFit,
    /// How long sensor and meter were compared.
    pub time: Seconds,
    /// The file in which it is stored; `None` if the command failed, so that it is not stored.
    pub file: Option<std::path::PathBuf>,
    /// How the command ended; `None` without a command.
    pub command: Option<CommandExit>,
    /// Warnings about the result.
    pub warnings: Vec<String>,
}

/// Why a calibration cannot be made or applied.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The readings do not tell the gain.
    #[error(transparent)]
    Fit(#[from] CalibrationError),
    /// Several GPUs could be meant.
    #[error(
        "{0} GPUs are visible, and one at a time can be calibrated: choose it, such as with --device 0"
    )]
    SeveralGpus(usize),
    /// The sensor has no values that are close enough in time.
    #[error("{0} has no sensor that is fast enough to be compared with a meter")]
    NoFastSensor(String),
    /// The meter has several channels.
    #[error("the meter {0} adds up several channels: calibrate against one of them")]
    SeveralChannels(String),
    /// There is no folder for the user's files.
    #[error("the folder of your configuration is unknown: set HOME or XDG_CONFIG_HOME")]
    NoFolder,
    /// The file cannot be read or written.
    #[error("{0}")]
    File(String),
    /// The name is used already.
    #[error(
        "there is a calibration `{name}` already, of {device} at {date}: choose another --name, or replace it with --replace"
    )]
    Exists {
        /// The name.
        name: String,
        /// The calibrated device.
        device: String,
        /// When it was made.
        date: String,
    },
    /// The name has other letters than it may have.
    #[error("`{0}` cannot be the name of a calibration: use letters, digits, - and _")]
    BadName(String),
    /// There is no calibration with this name.
    #[error("there is no calibration `{name}` in {file}: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The file.
        file: String,
        /// The names that there are.
        known: String,
    },
    /// Two calibrations are of the same device.
    #[error("the calibrations {first} and {second} are both of {device}: apply one of them")]
    SameDevice {
        /// The first calibration.
        first: String,
        /// The second calibration.
        second: String,
        /// The device.
        device: String,
    },
    /// The calibration is of a device that is not measured.
    #[error(
        "the calibration {name} is of {device} ({id}), which is not measured here: a calibration is valid for one board alone"
    )]
    OtherDevice {
        /// The name.
        name: String,
        /// The name of the calibrated device.
        device: String,
        /// Its UUID.
        id: String,
    },
}

/// How long the idle device is observed before and after the command, so that there is a change of power.
const REST: Duration = Duration::from_secs(4);
/// How often the counters of the host are read, which are read rarely otherwise.
const HOST_PERIOD: Duration = Duration::from_millis(100);

/// Rejects calibrations of devices that are not measured.
pub(crate) fn reject_other_devices<'a>(
    calibrations: &[Calibration],
    measured: impl Iterator<Item = &'a Descriptor> + Clone,
) -> Result<(), CalibrateError> {
    for one in calibrations {
        let missing = one
            .devices
            .iter()
            .find(|id| !measured.clone().any(|device| device.id == **id));
        if let Some(id) = missing {
            return Err(CalibrateError::OtherDevice {
                name: one.name.clone(),
                device: one.device_name.clone(),
                id: id.to_string(),
            });
        }
    }
    Ok(())
}

/// Compares a sensor with a meter while a command runs, and stores the calibration.
pub fn calibrate(
    request: &CalibrateRequest,
    observer: &mut dyn Observer,
) -> Result<CalibrateResult, SessionError> {
    let mut file = CalibrationFile::load()?;
    let name = calibration_name(request)?;
    if let Some(known) = file.get(&name).filter(|_| !request.replace) {
        return Err(CalibrateError::Exists {
            name,
            device: known.device_name.clone(),
            date: known.date.clone(),
        }
        .into());
    }
    let (target, others) = devices(request)?;
    let (of_target, device_name) = (descriptors(&target), device_name(request, &target));
    let others_count = others.len();
    let mut meters = NodeMeters::open(std::slice::from_ref(&request.meter))?;
    let signals = SignalSource::listen()?;
    let read = target.into_iter().chain(others);
    let read = read.map(|device| device as Box<dyn Device + Send>);
    let sampler = Sampler::start(read.collect(), MethodChoice::Auto, Arc::new(MonotonicClock))?;
    if !request.command.is_empty() {
        observer.note(&format!(
            "comparing {device_name} with the meter {}: the idle device first, for {} s",
            request.meter,
            REST.as_secs()
        ));
    }
    let begin = sampler.mark();
    let ended = observe(request, &sampler, of_target.len(), &signals, observer);
    let span = Span::new(begin, sampler.mark());
    let command = ended?;
    if let Some(meters) = &mut meters {
        meters.wait_until_shown(span.end);
    }
    let recorded = sampler.stop()?;
    let traces = meters
        .map(|mut meters| meters.traces(None))
        .unwrap_or_default();
    let [trace] = traces.as_slice() else {
        return Err(CalibrateError::SeveralChannels(request.meter.clone()).into());
    };
    let (own, rest) = recorded.split_at(of_target.len());
    let fit = compare(trace, &device_name, own, rest, &span)?;
    let calibration = Calibration {
        name,
        devices: of_target.iter().map(|device| device.id.clone()).collect(),
        device_name,
        meter: request.meter.clone(),
        scope: request.scope,
        date: date::date_now(),
        line: fit.line,
        residual: fit.residual,
    };
    let has_failed = command.is_some_and(|ended| ended != CommandExit::Code(0));
    if !has_failed {
        file.store(calibration.clone())?;
    }
    Ok(CalibrateResult {
        warnings: warnings(&fit, has_failed, others_count),
        calibration,
        time: span.length(),
        file: (!has_failed).then(|| file.path().to_owned()),
        command,
        fit,
    })
}

/// The name of the new calibration: the one that the user gave, or that of the meter.
fn calibration_name(request: &CalibrateRequest) -> Result<String, CalibrateError> {
    let name = match &request.name {
        Some(name) => name.clone(),
        None => request
            .meter
            .split(':')
            .next()
            .unwrap_or_default()
            .to_owned(),
    };
    file::check_name(&name)?;
    Ok(name)
}

/// The devices whose sensor is calibrated, and the others, whose power may change too.
fn devices(request: &CalibrateRequest) -> Result<(Vec<Gpu>, Vec<Gpu>), SessionError> {
    if request.host {
        // The power of a machine without GPUs can be calibrated too.
        let gpus = open_host().and_then(|host| host.list()).unwrap_or_default();
        return Ok((host_energy_parts()?, whole_and_working(gpus)));
    }
    let gpus = select(
        all_gpus(open_host()?.as_ref())?,
        request.device.as_deref(),
        MigSlices::Exclude,
    )?;
    reject_lost(&gpus)?;
    if gpus.len() != 1 {
        return Err(CalibrateError::SeveralGpus(gpus.len()).into());
    }
    let own = gpus[0].descriptor().id.clone();
    let mut others = whole_and_working(all_gpus(open_host()?.as_ref())?);
    others.retain(|gpu| gpu.descriptor().id != own);
    Ok((gpus, others))
}

/// The GPUs that respond, without slices of GPUs.
fn whole_and_working(mut gpus: Vec<Gpu>) -> Vec<Gpu> {
    gpus.retain(|gpu| !gpu.is_lost() && gpu.descriptor().parent.is_none());
    gpus
}

/// The name of what is calibrated.
fn device_name(request: &CalibrateRequest, target: &[Gpu]) -> String {
    match (request.host, target) {
        (false, [gpu]) => gpu.descriptor().name.clone(),
        _ => "the host (processors and memory)".to_owned(),
    }
}

/// Waits for the idle device, runs the command or waits, and waits for the idle device again.
fn observe(
    request: &CalibrateRequest,
    sampler: &Sampler,
    targets: usize,
    signals: &SignalSource,
    observer: &mut dyn Observer,
) -> Result<Option<CommandExit>, SessionError> {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if request.host {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    sampler.mark_devices(sweetspot_device::Clock::now(&MonotonicClock), 0..targets);
                    std::thread::sleep(HOST_PERIOD);
                }
            });
        }
        let ended = run_between_rests(request, sampler, signals, observer);
        is_done.store(true, Ordering::Relaxed);
        ended
    })
}

/// Runs the command between two rests.
fn run_between_rests(
    request: &CalibrateRequest,
    sampler: &Sampler,
    signals: &SignalSource,
    observer: &mut dyn Observer,
) -> Result<Option<CommandExit>, SessionError> {
    if request.command.is_empty() {
        signals.wait_until(Instant::now() + Duration::from_secs_f64(request.time.get()))?;
        return Ok(None);
    }
    signals.wait_until(Instant::now() + REST)?;
    let measured = MeasureRequest::new(request.command.clone());
    let mut context = RunContext {
        request: &measured,
        sampler,
        signals,
        limits: RunLimits::default(),
        observer,
        used_gpus: 1,
        devices: Vec::new(),
        recognised: None,
    };
    let run = context.run(None)?;
    if let Some(signal) = run.outcome.interrupted {
        return Err(sweetspot_workload::WorkloadError::Interrupted(signal).into());
    }
    signals.wait_until(Instant::now() + REST)?;
    Ok(Some(run.outcome.ended))
}

/// Compares the readings of the sensor, and of the other devices, with those of the meter.
fn compare(
    trace: &MeterTrace,
    name: &str,
    own: &[DeviceRecording],
    rest: &[DeviceRecording],
    span: &Span,
) -> Result<CalibrationFit, SessionError> {
    let device = FastPower::new(own.iter().map(|one| &one.trace));
    let device = device.ok_or_else(|| CalibrateError::NoFastSensor(name.to_owned()))?;
    // What is calibrated is the energy that `measure` reports. Single samples may have another gain.
    let inside = device.span().overlap(span).unwrap_or(*span);
    let energies = own.iter().map(|one| {
        let energy = EnergyEstimator::new(&one.trace).energy(&inside, MethodChoice::Auto);
        energy.map(|energy| energy.value)
    });
    let energy: Result<sweetspot_quantity::Joules, _> = energies.sum();
    let factor = energy.map_or(Ratio::new(1.0), |energy| energy / device.energy(&inside));
    let device = device.scaled(factor);
    let others = FastPower::new(rest.iter().map(|one| &one.trace));
    let power = CalibrationPower {
        name,
        device: &device,
        others: others.as_ref(),
    };
    Ok(fit_line(trace, &power, span).map_err(CalibrateError::from)?)
}

/// Warnings about a calibration.
fn warnings(fit: &CalibrationFit, has_failed: bool, others: usize) -> Vec<String> {
    let mut warnings = fit.gaps.clone();
    if has_failed {
        warnings.push("the command failed: the calibration is not stored".to_owned());
    }
    if fit.others_changed {
        warnings.push(format!(
            "the power of {others} other GPUs changed too: what they added is taken off, and the interval is wider for it"
        ));
    }
    if fit.bend
        > fit
            .residual
            .max((fit.line.range.1 - fit.line.range.0) * 0.01)
    {
        warnings.push(format!(
            "the relation of meter and sensor is not a straight line: it bends by {:.1}, which is part of the interval",
            fit.bend
        ));
    }
    warnings
}
