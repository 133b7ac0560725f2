//! `hold` in real time: a serving program and a device on one side, a controller on the other.

use std::ffi::OsString;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use sweetspot_backend_nvml::NvmlGpu;
use sweetspot_control::hold::{DeviceKnob, Holder, Terms};
use sweetspot_device::{Amount, Clock, Descriptor, Device, MonotonicClock, SensorKind, Settings};
use sweetspot_guard::{End, Ended, GuardError, Message};
use sweetspot_link::Reader;
use sweetspot_measure::{MethodChoice, Sampler};
use sweetspot_quantity::{Ratio, Watts};

use super::cap::CapFile;
use super::energy::EnergyParts;
use super::feed::{Feed, best_sensor};
use super::pump::{Parts, Pump};
use super::request::{HoldKnob, HoldRequest, first_cap};
use super::result::{HoldResult, HoldWatch};
use super::socket::ControlSocket;
use super::verdict::verdict;
use crate::SessionError;
use crate::gpus::{Slices, all_gpus, open_nvml, select, visible};
use crate::lease::{GRACE, GuardProgram, Lease, note_signals, noted, once_released};
use crate::measure::{Launch, Machine, Outlets, Output, OwnChildren, Starter};

/// Between two looks at everything.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the command and holds its device below the cap.
pub fn hold(
    request: &HoldRequest,
    guard: GuardProgram<'_>,
    watch: &mut dyn HoldWatch,
) -> Result<HoldResult, SessionError> {
    request.check()?;
    let mut gpu = the_gpu(request)?;
    let device = gpu.descriptor().clone();
    let sensor = sensor_of(request, &device)?;
    let mut file = request.cap_file.as_deref().map(CapFile::new);
    let of_file = file.as_mut().and_then(CapFile::look);
    if let (Some(_), Some(Err(problem))) = (request.below, &of_file) {
        watch.tell(&format!("{problem}; --below counts until it says a power"));
    }
    let enforced = gpu.power_limits().ok().map(|limits| limits.enforced);
    let cap = first_cap(request.below, of_file, enforced)?;
    let terms = terms(request, &device, cap, at_rest(&mut gpu))?;
    let bad = |problem: sweetspot_control::hold::TermsError| {
        SessionError::Definition(problem.to_string())
    };
    let holder = Holder::new(terms.clone()).map_err(bad)?;
    let machine = Machine::here(open_nvml()?.driver_version().ok());
    let link = Reader::create()?;
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock);
    let boxed: Box<dyn Device + Send> = Box::new(gpu.reopen()?);
    let sampler = Sampler::start(vec![boxed], MethodChoice::Auto, clock.clone())?;
    let lease = match terms.knob {
        DeviceKnob::None => None,
        _ => {
            let devices = [device.clone()];
            let lease = Lease::take(&devices, guard, &mut |note| watch.tell(note));
            Some(lease.map_err(|problem| of_privilege(problem, request.knob))?)
        }
    };
    let interrupted = match &lease {
        Some(lease) => lease.flag(),
        None => note_signals()?,
    };
    let begin = clock.now();
    let feed = Feed::start(gpu.reopen()?, sensor, begin).map_err(system("no thread for power"))?;
    let socket = open_socket(watch);
    let parts = Parts {
        request,
        terms: &terms,
        holder,
        link,
        feed,
        lease,
        device: &device,
        file,
        socket,
        begin,
    };
    let mut pump = Pump::new(parts, watch);
    let mut energy = EnergyParts::default();
    let done = through(&mut pump, request, &gpu, &interrupted, |pump| {
        pump.look(&sampler);
        match pump.served {
            Some((first, _)) => energy.follow(&sampler, first, MonotonicClock.now()),
            None => Ok(()),
        }
    });
    sampler.mark();
    // The device comes first, whatever happened.
    let restored = pump.release();
    let recorded = sampler.stop();
    let signal = noted(&interrupted);
    let (ended, at) = match (done, signal) {
        (Ok(end), None) => (end.ended, end.at),
        (_, Some(signal)) => (Ended::Signal(signal), clock.now()),
        (Err(problem), None) => return Err(once_released(problem, &restored)),
    };
    let restored = restored?;
    let recorded = recorded?;
    let served = pump.served;
    let mut held = pump.held(machine, request, &terms);
    held.energy = served.and_then(|(_, last)| energy.finish(&recorded, last));
    held.run_time = at - begin;
    held.ended = ended;
    held.restored = restored;
    held.kept = verdict(&held);
    Ok(held)
}

/// Whoever may not set a device may still hold it by the batch size.
fn of_privilege(problem: SessionError, knob: HoldKnob) -> SessionError {
    let is_denied = match &problem {
        SessionError::Guard(error) => error.is_permission_denied(),
        SessionError::Journal(error) => error.is_permission_denied(),
        _ => false,
    };
    if !is_denied {
        return problem;
    }
    let text = match &problem {
        SessionError::Guard(GuardError::CannotStart { folder, reason, .. }) => {
            format!("{}: {reason}", folder.display())
        }
        other => other.to_string(),
    };
    SessionError::Definition(format!(
        "--knob {knob} sets the device: {text}; run it as root, or use --knob batch, which needs no privilege"
    ))
}

/// A hold without it goes on: only `hold set` does not reach it.
fn open_socket(watch: &mut dyn HoldWatch) -> Option<ControlSocket> {
    match ControlSocket::open() {
        Ok(socket) => Some(socket),
        Err(problem) => {
            watch.tell(&format!(
                "no control socket: {problem}; the cap cannot be changed by `sweetspot hold set`"
            ));
            None
        }
    }
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> SessionError {
    move |problem| SessionError::System { what, problem }
}

/// A batch serves one GPU, and so does a hold.
fn the_gpu(request: &HoldRequest) -> Result<NvmlGpu, SessionError> {
    let mut gpus = select(
        all_gpus(open_nvml()?)?,
        request.device.as_deref(),
        Slices::No,
    )?;
    if gpus.len() != 1 {
        return Err(SessionError::Definition(format!(
            "a hold is of one GPU, and there are {}: name one with --device, and hold each by itself",
            gpus.len()
        )));
    }
    let gpu = gpus.swap_remove(0);
    if gpu.is_lost() {
        return Err(SessionError::Lost(gpu.descriptor().name.clone()));
    }
    Ok(gpu)
}

fn sensor_of(request: &HoldRequest, device: &Descriptor) -> Result<SensorKind, SessionError> {
    let bad = |problem: String| SessionError::Setting {
        device: device.name.clone(),
        problem,
    };
    match request.sensor {
        Some(sensor) if device.sensor(sensor).is_none() => Err(bad(format!(
            "it has no {sensor}: leave --sensor away (`sweetspot devices` shows what it has)"
        ))),
        Some(sensor) => Ok(sensor),
        None => best_sensor(device)
            .ok_or_else(|| bad("it has no power sensor: nothing can be held".to_owned())),
    }
}

/// What the device draws now, where nobody uses it.
fn at_rest(gpu: &mut NvmlGpu) -> Option<Watts> {
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
) -> Result<Terms, SessionError> {
    let mode = request.mode()?;
    let knob = request.device_knob(device)?;
    let mut terms = Terms::of(mode, cap, request.batches.clone(), knob);
    terms.goal = request.goal;
    terms.latency_p99 = request.latency_p99;
    terms.idle = idle;
    let usual = terms.fixed_batch;
    // Where only the device is set, the batch size is one of those that are allowed.
    let nearest = request.batches.iter().copied();
    let nearest = nearest.min_by_key(|size| size.abs_diff(usual));
    terms.fixed_batch = request.fixed_batch.or(nearest).unwrap_or(usual);
    if terms.sets_device_alone() {
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

/// Starts the command and looks at everything until it is over.
fn through<'a, 'b>(
    pump: &mut Pump<'a, 'b>,
    request: &HoldRequest,
    gpu: &NvmlGpu,
    interrupted: &AtomicUsize,
    mut look: impl FnMut(&mut Pump<'a, 'b>) -> Result<(), SessionError>,
) -> Result<End, SessionError> {
    pump.set_first()
        .map_err(|problem| of_privilege(problem, request.knob))?;
    let mut environment = vec![(
        sweetspot_link::ENV.to_owned(),
        pump.link.folder().to_string_lossy().into_owned(),
    )];
    if request.device.is_some() {
        environment.extend(visible(std::slice::from_ref(gpu)));
    }
    let launch = Launch {
        words: &request.command,
        environment,
        output: match request.keep_stdout {
            true => Output::ToStandardError,
            false => Output::Inherited,
        },
        no_input: false,
        folder: None,
    };
    let mut starter = OwnChildren;
    let mut own = None;
    match &mut pump.lease {
        Some(lease) => {
            let (_, outlets) = lease.guard().start(launch)?;
            pass_on(outlets);
        }
        None => own = Some(starter.start(launch)?.0),
    }
    let mut give_up: Option<Instant> = None;
    let mut passed = None;
    loop {
        let end = match (&mut own, &mut pump.lease) {
            (Some(process), _) => process.wait(LOOK)?,
            (None, Some(lease)) => match lease.guard().wait_for(LOOK)? {
                Some(Message::Ended(end)) => Some(end),
                Some(Message::Released(problems)) => {
                    lease.guard().keep(problems);
                    None
                }
                None => None,
            },
            (None, None) => None,
        };
        look(pump)?;
        if let Some(end) = end {
            // The last records come with the drain that finds their rings ended.
            for _ in 0..3 {
                look(pump)?;
            }
            if end.left
                && noted(interrupted).is_some()
                && let Some(process) = &mut own
            {
                process.end()?;
            }
            return Ok(end);
        }
        if let Some(signal) = noted(interrupted) {
            pump.given_back();
            if passed.replace(signal) != Some(signal)
                && let Some(process) = &mut own
            {
                process.pass(signal);
            }
            give_up.get_or_insert(Instant::now() + GRACE);
        }
        if give_up.is_some_and(|at| Instant::now() > at) {
            match (&mut own, &mut pump.lease) {
                (Some(process), _) => process.end()?,
                (None, Some(lease)) => {
                    lease.guard().end_workload()?;
                }
                (None, None) => {}
            }
            return Ok(End {
                ended: Ended::Signal(passed.unwrap_or(0)),
                at: MonotonicClock.now(),
                left: true,
            });
        }
    }
}

/// What a guarded command prints while standard output is taken.
fn pass_on(outlets: Option<Outlets>) {
    let Some(outlets) = outlets else { return };
    for mut from in [outlets.output, outlets.error] {
        let copy = move || {
            let mut chunk = [0; 1 << 14];
            loop {
                match from.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(length) => {
                        let _ = std::io::Write::write_all(&mut std::io::stderr(), &chunk[..length]);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        };
        let _ = std::thread::Builder::new().spawn(copy);
    }
}

/// A device's knob as settings.
pub(super) fn settings_of(setting: &sweetspot_control::hold::Setting) -> Settings {
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
