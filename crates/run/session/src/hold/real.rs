//! `hold` in real time: a serving program and a device on one side, a controller on the other.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use sweetspot_control::hold::{DeviceKnob, HoldConfig, Holder};
use sweetspot_device::{
    Amount, Clock, Descriptor, HostDevice, MigSlices, MonotonicClock, SensorKind, Settings,
};
use sweetspot_guard::GuardError;
use sweetspot_measure::{MethodChoice, Sampler};
use sweetspot_quantity::{Ratio, Watts};
use sweetspot_workload::{
    CommandExit, CommandSpec, GuardProgram, Lease, OutputTarget, ProgressReader, RunLimits,
    SignalSource, WorkloadError, run_until_exit,
};

use super::HoldError;
use super::cap::CapFile;
use super::feed::{Feed, best_sensor};
use super::hold_loop::{HoldLoop, Parts};
use super::request::{HoldKnob, HoldRequest, first_cap};
use super::result::HoldResult;
use super::socket::ControlSocket;
use super::verdict::verdict;
use crate::host::{
    Gpu, all_gpus, guard_folder, open_host, reject_lost, reopen_for_reading, select, visible,
};
use crate::measure::Machine;
use crate::observer::Observer;
use crate::{DevicesError, SessionError};

/// How often the controller looks at everything.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs the command and holds its device below the cap.
pub fn hold(
    request: &HoldRequest,
    guard: GuardProgram<'_>,
    observer: &mut dyn Observer,
) -> Result<HoldResult, SessionError> {
    request.check()?;
    let mut gpu = the_gpu(request)?;
    let device = gpu.descriptor().clone();
    let sensor = sensor_of(request, &device)?;
    let mut file = request.cap_file.as_deref().map(CapFile::new);
    let of_file = file.as_mut().and_then(CapFile::look);
    if let (Some(_), Some(Err(problem))) = (request.below, &of_file) {
        observer.note(&format!(
            "{problem}; the cap given at the start applies until then"
        ));
    }
    let enforced = gpu.power_limits().ok().map(|limits| limits.enforced);
    let cap = first_cap(request.below, of_file, enforced)?;
    let terms = terms(request, &device, cap, power_at_rest(gpu.as_mut()))?;
    let holder = Holder::new(terms.clone())?;
    let machine = Machine::here(open_host()?.driver_version().ok());
    let mut reader = ProgressReader::with_link()?;
    let clock = Arc::new(MonotonicClock);
    let devices = reopen_for_reading([&gpu])?;
    let sampler = Sampler::start(devices, MethodChoice::Auto, clock.clone())?;
    let signals = SignalSource::listen()?;
    let mut lease = match terms.knob {
        DeviceKnob::None => None,
        _ => {
            let devices = [device.clone()];
            let mut note = |text: &str| observer.note(text);
            let lease = Lease::take(&devices, &guard_folder(), guard, &signals, &mut note);
            Some(lease.map_err(|problem| of_privilege(problem.into(), request.knob))?)
        }
    };
    let begin = clock.now();
    let feed = Feed::start(gpu.reopen()?, sensor, begin)
        .map_err(SessionError::system("no thread for power"))?;
    let socket = open_socket(observer);
    let parts = Parts {
        request,
        terms: &terms,
        holder,
        feed,
        sampler: &sampler,
        device: device.clone(),
        file,
        socket,
        begin,
    };
    let mut hold_loop = HoldLoop::new(parts, observer);
    let first = hold_loop.set_first(reader.control(), lease.as_mut());
    let first = first.map_err(|problem| of_privilege(problem, request.knob));
    let limits = RunLimits {
        poll_interval: POLL_INTERVAL,
        ..RunLimits::default()
    };
    let done = first.and_then(|()| {
        run_until_exit(
            &command_spec(request, &gpu),
            limits,
            lease.as_mut(),
            &signals,
            &mut reader,
            &mut hold_loop,
        )
    });
    hold_loop.finish();
    // The device comes first, whatever happened.
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
    let mut held = hold_loop.held(machine, request, &terms);
    let recorded = sampler.stop()?;
    held.energy = served.and_then(|(_, last)| energy.finish(&recorded, last));
    held.run_time = at - begin;
    held.ended = ended;
    held.restored = restored;
    held.kept = verdict(&held);
    Ok(held)
}

fn command_spec(request: &HoldRequest, gpu: &Gpu) -> CommandSpec {
    let variables = request.device.as_ref().map(|_| visible([gpu]));
    let variables = variables.into_iter().flatten();
    CommandSpec {
        environment: variables
            .map(|(name, value)| (name, value.into()))
            .collect(),
        output: match request.keep_stdout {
            true => OutputTarget::StandardError,
            false => OutputTarget::StandardOutput,
        },
        ..CommandSpec::new(request.command.clone())
    }
}

/// Whoever may not set a device may still hold it by the batch size.
fn of_privilege(problem: SessionError, knob: HoldKnob) -> SessionError {
    if !matches!(&problem, SessionError::Workload(error) if error.is_permission_denied()) {
        return problem;
    }
    let text = match &problem {
        SessionError::Workload(WorkloadError::Guard(GuardError::CannotStart {
            folder,
            reason,
            ..
        })) => {
            format!("{}: {reason}", folder.display())
        }
        other => other.to_string(),
    };
    let problem = text;
    HoldError::NotPermitted { knob, problem }.into()
}

/// A hold without it goes on: only `hold set` does not reach it.
fn open_socket(observer: &mut dyn Observer) -> Option<ControlSocket> {
    match ControlSocket::open() {
        Ok(socket) => Some(socket),
        Err(problem) => {
            observer.note(&format!(
                "no control socket: {problem}; the cap cannot be changed by `sweetspot hold set`"
            ));
            None
        }
    }
}

/// A batch serves one GPU, and so does a hold.
fn the_gpu(request: &HoldRequest) -> Result<Gpu, SessionError> {
    let gpus = all_gpus(open_host()?.as_ref())?;
    let mut gpus = select(gpus, request.device.as_deref(), MigSlices::Exclude)?;
    if gpus.len() != 1 {
        return Err(HoldError::SeveralGpus(gpus.len()).into());
    }
    reject_lost(&gpus)?;
    Ok(gpus.swap_remove(0))
}

fn sensor_of(request: &HoldRequest, device: &Descriptor) -> Result<SensorKind, DevicesError> {
    let bad = |problem: String| DevicesError::NotSupported {
        device: device.name.clone(),
        problem,
    };
    match request.sensor {
        Some(sensor) if device.sensor(sensor).is_none() => Err(bad(format!(
            "it has no {sensor} (`sweetspot devices` shows its sensors)"
        ))),
        Some(sensor) => Ok(sensor),
        None => best_sensor(device)
            .ok_or_else(|| bad("it has no power sensor, so that no cap can be held".to_owned())),
    }
}

/// What the device draws now, where nobody uses it.
fn power_at_rest(gpu: &mut dyn HostDevice) -> Option<Watts> {
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

fn terms(
    request: &HoldRequest,
    device: &Descriptor,
    cap: Watts,
    idle: Option<Watts>,
) -> Result<HoldConfig, SessionError> {
    let mode = request.mode()?;
    let knob = request.device_knob(device)?;
    let mut terms = HoldConfig::new(mode, cap, request.batches.clone(), knob);
    terms.goal = request.goal;
    terms.latency_p99 = request.latency_p99;
    terms.idle_power = idle;
    let usual = terms.fixed_batch;
    // Where only the device is set, the batch size is one of those that are allowed.
    let nearest = request.batches.iter().copied();
    let nearest = nearest.min_by_key(|size| size.abs_diff(usual));
    terms.fixed_batch = request.fixed_batch.or(nearest).unwrap_or(usual);
    if terms.sets_device_only() {
        terms.batches = vec![terms.fixed_batch];
    }
    terms.alpha = request.alpha.unwrap_or(terms.alpha);
    terms.window = request.window.unwrap_or(terms.window);
    terms.settle = request.settle.unwrap_or(terms.settle);
    terms.expiry = request.expiry.unwrap_or(terms.expiry);
    terms.probe = request.probe.unwrap_or(terms.probe);
    terms.patience = request.patience.unwrap_or(terms.patience);
    Ok(terms)
}

/// A device's knob as settings.
pub(super) fn settings_of(setting: &sweetspot_control::hold::HoldSetting) -> Settings {
    Settings {
        core_clock: setting.core_clock,
        power_cap: setting.power_cap,
        memory_clock: None,
    }
}

/// The command in words.
pub(super) fn words(command: &[OsString]) -> Vec<String> {
    let words = command.iter().map(|word| word.to_string_lossy());
    words.map(|word| word.into_owned()).collect()
}
