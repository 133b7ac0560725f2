//! `hold` on real GPUs: runs a serving program and keeps the power of its GPUs, summed up, below a cap.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use sweetspot_control::hold::{CapOn, DeviceKnob, HoldConfig, HoldMode, Holder};
use sweetspot_control::tune::SettingsScope;
use sweetspot_device::{
    Amount, Clock, Descriptor, HostDevice, MigSlices, Moment, MonotonicClock, SensorKind, Settings,
};
use sweetspot_measure::{MethodChoice, Sampler};
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_workload::{
    CommandExit, CommandSpec, GuardProgram, Lease, OutputTarget, ProgressReader, RunLimits,
    SignalSource, run_until_exit,
};

use super::HoldError;
use super::automatic::{AutomaticChoice, choose_knob};
use super::cap::CapFile;
use super::energy::total_energy;
use super::group::{GpuGroup, GroupLimits};
use super::hold_loop::{HoldLoop, HoldLoopParts};
use super::power_reader::{PowerReader, best_sensor, fastest_sensor};
use super::request::{HoldKnob, HoldRequest, first_cap};
use super::result::HoldResult;
use super::socket::{ControlSocket, ControlledVerb};
use super::verdict::judge;
use crate::host::{
    Gpu, descriptors, open_host, reopen_for_reading, select_working, visibility_variables,
};
use crate::measure::Machine;
use crate::observer::Observer;
use crate::{DevicesError, SessionError};

/// The interval between two steps of the control loop.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The longest time that a reading may cover if the cap binds every reading.
const SLOWEST_FAST_READING: Seconds = Seconds::new(0.1);

/// Runs the command and keeps the power of its GPUs, summed up, below the cap.
pub fn hold(
    request: &HoldRequest,
    guard: GuardProgram<'_>,
    observer: &mut dyn Observer,
) -> Result<HoldResult, SessionError> {
    request.check()?;
    let mut gpus = select_working(request.device.as_deref(), MigSlices::Exclude)?;
    let devices = descriptors(&gpus);
    let sensors = select_sensors(request, &devices)?;
    let mut cap_file = request.cap_file.as_deref().map(CapFile::new);
    let cap = read_first_cap(request, &mut gpus, cap_file.as_mut(), observer)?;
    let signals = SignalSource::listen()?;
    let known = GroupLimits::read(&mut gpus);
    let chosen = match request.knob {
        HoldKnob::Auto => choose_knob(request, &devices, (cap, &known), guard, &signals, observer)?,
        _ => AutomaticChoice {
            request: request.clone(),
            lease: None,
        },
    };
    let (request, mut lease) = (&chosen.request, chosen.lease);
    let config = hold_config(request, &devices, cap, &known)?;
    let holder = Holder::new(config.clone())?;
    let first = holder.setting();
    let machine = Machine::detect(open_host()?.driver_version().ok());
    let mut reader = ProgressReader::with_link()?;
    let clock = Arc::new(MonotonicClock);
    let sampler = Sampler::start(
        reopen_for_reading(&gpus)?,
        MethodChoice::Auto,
        clock.clone(),
    )?;
    if config.knob != DeviceKnob::None && lease.is_none() {
        lease = Some(take_lease(request, &devices, guard, &signals, observer)?);
    }
    let begin = clock.now();
    let power = start_readers(&gpus, &sensors, begin)?;
    let socket = open_socket(observer);
    let parts = HoldLoopParts {
        request,
        config: &config,
        holder,
        power,
        sampler: &sampler,
        group: GpuGroup::new(devices, &known, request.scope, &first),
        cap_file,
        socket,
        begin,
    };
    let mut hold_loop = HoldLoop::new(parts, observer);
    let first = hold_loop.apply_first_setting(reader.control(), lease.as_mut());
    let first = first.map_err(|problem| explain_permission(problem, request.knob));
    let limits = RunLimits {
        poll_interval: POLL_INTERVAL,
        ..RunLimits::default()
    };
    let done = first.and_then(|()| {
        run_until_exit(
            &command_spec(request, &gpus),
            limits,
            lease.as_mut(),
            &signals,
            &mut reader,
            &mut hold_loop,
        )
    });
    hold_loop.finish();
    // The device is restored before any error is returned.
    let restored = match lease {
        Some(lease) => lease.release(&mut |text| hold_loop.note(text)),
        None => Ok(true),
    };
    let served = hold_loop.served;
    let energy = std::mem::take(&mut hold_loop.energy);
    let (ended, at) = match (done, signals.received()) {
        (Ok(outcome), None) => (outcome.ended, outcome.exited),
        (_, Some(signal)) => (CommandExit::Signal(signal), clock.now()),
        (Err(problem), None) => return Err(problem.after_release(&restored)),
    };
    let restored = restored?;
    let mut result = hold_loop.into_result(machine, request, &config);
    let recorded = sampler.stop()?;
    let energies = served.map_or(Vec::new(), |(_, last)| energy.finish(&recorded, last));
    result.energy = total_energy(&energies);
    for (gpu, energy) in result.gpus.iter_mut().zip(energies) {
        gpu.energy = energy;
    }
    result.run_time = at - begin;
    result.ended = ended;
    result.restored = restored;
    result.verdict = judge(&result);
    Ok(result)
}

/// Starts a thread for each GPU that reads its power.
fn start_readers(
    gpus: &[Gpu],
    sensors: &[SensorKind],
    begin: Moment,
) -> Result<Vec<PowerReader>, SessionError> {
    let readers = gpus.iter().zip(sensors).map(|(gpu, sensor)| {
        PowerReader::start(gpu.reopen()?, *sensor, begin)
            .map_err(SessionError::system("cannot start a thread to read power"))
    });
    readers.collect()
}

/// The cap at the start, from the command line, the cap file or the devices. A warning is shown if the cap
/// file is invalid.
fn read_first_cap(
    request: &HoldRequest,
    gpus: &mut [Gpu],
    cap_file: Option<&mut CapFile>,
    observer: &mut dyn Observer,
) -> Result<Watts, HoldError> {
    let file_cap = cap_file.and_then(CapFile::read_change);
    if let (Some(_), Some(Err(problem))) = (request.cap, &file_cap) {
        observer.note(&format!(
            "{problem}; the cap given on the command line applies until the file is valid"
        ));
    }
    let limits = gpus.iter_mut().map(|gpu| gpu.power_limits().ok());
    let enforced = limits
        .map(|limits| limits.map(|limits| limits.enforced))
        .sum();
    first_cap(request.cap, file_cap, enforced)
}

/// Leases the GPUs; a missing permission becomes an error that recommends the knob `batch`.
fn take_lease<'a>(
    request: &HoldRequest,
    devices: &[Descriptor],
    guard: GuardProgram<'a>,
    signals: &SignalSource,
    observer: &mut dyn Observer,
) -> Result<Lease<'a>, SessionError> {
    let mut note = |text: &str| observer.note(text);
    let lease = Lease::take(devices, guard, signals, &mut note);
    lease.map_err(|problem| explain_permission(problem.into(), request.knob))
}

/// How the program is started: on the selected GPUs, and with its output where the request wants it.
fn command_spec(request: &HoldRequest, gpus: &[Gpu]) -> CommandSpec {
    let variables = request.device.as_ref().map(|_| visibility_variables(gpus));
    let variables = variables.into_iter().flatten();
    CommandSpec {
        environment: variables
            .map(|(name, value)| (name, value.into()))
            .collect(),
        output: match request.keep_stdout {
            true => OutputTarget::StandardError,
            false => OutputTarget::StandardOutput,
        },
        has_status_line: true,
        ..CommandSpec::new(request.command.clone())
    }
}

/// Turns the error of a missing permission into one that recommends the knob `batch`, which needs no
/// permission.
fn explain_permission(problem: SessionError, knob: HoldKnob) -> SessionError {
    if !matches!(&problem, SessionError::Workload(error) if error.is_permission_denied()) {
        return problem;
    }
    let problem = problem.to_string();
    HoldError::NotPermitted { knob, problem }.into()
}

/// Opens the control socket. If that fails, the user is warned and `hold` works without `hold set`.
fn open_socket(observer: &mut dyn Observer) -> Option<ControlSocket> {
    match ControlSocket::open(ControlledVerb::Hold) {
        Ok(socket) => Some(socket),
        Err(problem) => {
            observer.note(&format!(
                "cannot open the control socket: {problem}; `sweetspot hold set` cannot change the cap"
            ));
            None
        }
    }
}

/// The power sensor of each GPU; an error if one cannot be used.
fn select_sensors(
    request: &HoldRequest,
    devices: &[Descriptor],
) -> Result<Vec<SensorKind>, SessionError> {
    let sensors = devices.iter().map(|device| {
        let sensor = select_sensor(request, device)?;
        reject_slow_sensor(request, sensor, device)?;
        Ok(sensor)
    });
    sensors.collect()
}

/// The requested power sensor, or the best one; an error if the device does not have it.
fn select_sensor(request: &HoldRequest, device: &Descriptor) -> Result<SensorKind, DevicesError> {
    let bad = |problem: String| DevicesError::NotSupported {
        device: device.name.clone(),
        problem,
    };
    match request.sensor {
        Some(sensor) if device.sensor(sensor).is_none() => Err(bad(format!(
            "this GPU has no {sensor} (`sweetspot devices` shows its sensors)"
        ))),
        Some(sensor) => Ok(sensor),
        None => default_sensor(request, device)
            .ok_or_else(|| bad("this GPU has no power sensor, which hold needs".to_owned())),
    }
}

/// The power sensor that a request uses unless it names one: the paper's algorithms decide by the highest reading, so that
/// they need the sensor that shows short spikes best.
fn default_sensor(request: &HoldRequest, device: &Descriptor) -> Option<SensorKind> {
    match request.mode.is_some_and(HoldMode::follows_paper) {
        true => fastest_sensor(device),
        false => best_sensor(device),
    }
}

/// Rejects a sensor whose readings are means over a longer time than the cap binds.
fn reject_slow_sensor(
    request: &HoldRequest,
    sensor: SensorKind,
    device: &Descriptor,
) -> Result<(), HoldError> {
    let window = device.sensor(sensor).and_then(|sensor| sensor.window);
    let window = window.filter(|_| sensor == SensorKind::AveragePower);
    let cap_on = request.cap_on;
    let longest = match cap_on {
        CapOn::Mean(time) => time,
        CapOn::Reading => SLOWEST_FAST_READING,
    };
    let Some(window) = window.filter(|window| *window > longest * 1.1) else {
        return Ok(());
    };
    Err(match request.mode.filter(|mode| mode.follows_paper()) {
        Some(mode) => HoldError::SlowSensorForMode { mode, window },
        None => HoldError::SlowSensor { cap_on, window },
    })
}

/// The present power of the idle device; `None` if a program uses the device.
pub(super) fn read_idle_power(gpu: &mut dyn HostDevice) -> Option<Watts> {
    let used = gpu.read(SensorKind::Utilisation).ok()?.amount;
    let sensors = [SensorKind::AveragePower, SensorKind::InstantPower];
    let mut read = sensors
        .into_iter()
        .filter_map(|sensor| gpu.read(sensor).ok());
    match (used, read.next()?.amount) {
        (Amount::Share(used), Amount::Power(power)) if used <= Ratio::ZERO => Some(power),
        _ => None,
    }
}

/// The configuration of the control algorithm, from the request and the devices' knobs.
pub(super) fn hold_config(
    request: &HoldRequest,
    devices: &[Descriptor],
    cap: Watts,
    known: &GroupLimits,
) -> Result<HoldConfig, SessionError> {
    let mode = request.mode()?;
    let batches = request.batches.clone();
    let mut config = match (request.knob, known.cap_range()) {
        (HoldKnob::Auto, Some(range)) => HoldConfig::with_device_cap(cap, batches, range),
        (_, range) => HoldConfig::new(mode, cap, batches, request.device_knob(devices, range)?),
    };
    config.is_balancing = devices.len() > 1 && request.scope == SettingsScope::Each;
    config.cap_on = request.cap_on;
    config.goal = request.goal;
    config.latency_p99 = request.latency_p99;
    config.idle_power = known.idle_power();
    // If only a device setting is controlled, the batch size is the allowed size nearest to the default.
    let default = config.fixed_batch;
    let sizes = request.batches.iter().copied();
    let nearest = sizes.min_by_key(|size| size.abs_diff(default));
    config.fixed_batch = request.fixed_batch.or(nearest).unwrap_or(default);
    if config.sets_device_only() {
        config.batches = vec![config.fixed_batch];
    }
    config.alpha = request.alpha.unwrap_or(config.alpha);
    config.window = request.window.unwrap_or(config.window);
    config.settle = request.settle.unwrap_or(config.settle);
    config.expiry = request.expiry.unwrap_or(config.expiry);
    config.probe = request.probe.unwrap_or(config.probe);
    config.patience = request.patience.unwrap_or(config.patience);
    Ok(config)
}

/// The power cap and the core clock of a setting, without its batch size.
pub(super) fn device_settings(setting: &sweetspot_control::hold::HoldSetting) -> Settings {
    Settings {
        core_clock: setting.core_clock,
        power_cap: setting.power_cap,
        memory_clock: None,
    }
}

/// The words of a command as text.
pub(super) fn command_text(command: &[OsString]) -> Vec<String> {
    let words = command.iter().map(|word| word.to_string_lossy());
    words.map(|word| word.into_owned()).collect()
}
