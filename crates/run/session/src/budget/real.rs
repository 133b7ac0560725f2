//! `budget` on real GPUs: leases them, and keeps them together under the budget until a signal.

use sweetspot_control::budget::{BudgetConfig, BudgetedDevice, Budgeter};
use sweetspot_device::{Clock, MigSlices, MonotonicClock};
use sweetspot_guard::{JournalError, Refusal};
use sweetspot_quantity::Watts;
use sweetspot_workload::{GuardProgram, Lease, SignalSource};

use super::BudgetError;
use super::budget_loop::{BudgetLoop, BudgetedGpu, Reservation};
use super::node::NodeBudget;
use super::request::BudgetRequest;
use super::result::BudgetResult;
use crate::hold::cap::CapFile;
use crate::hold::cap_range;
use crate::hold::power_reader::{PowerReader, best_sensor};
use crate::hold::socket::{ControlSocket, ControlledVerb, running_pids};
use crate::host::{Gpu, all_gpus, descriptors, open_host, select};
use crate::measure::Machine;
use crate::node::NodeMeters;
use crate::observer::Observer;
use crate::{DevicesError, SessionError};

/// Keeps the GPUs together under the budget until a signal arrives or the time is over.
pub fn budget(
    request: &BudgetRequest,
    guard: GuardProgram<'_>,
    observer: &mut dyn Observer,
) -> Result<BudgetResult, SessionError> {
    if request.read_only {
        return Err(DevicesError::ReadOnly.into());
    }
    let mut gpus = select_gpus(request, observer)?;
    let mut cap_file = request.cap_file.as_deref().map(CapFile::new);
    let from_file = cap_file.as_mut().and_then(CapFile::read_change);
    let budget = request.first_budget(from_file.as_ref())?;
    if let Some(Err(problem)) = &from_file {
        observer.note(&format!(
            "{problem}; the budget given on the command line applies until the file is valid"
        ));
    }
    let mut node = NodeMeters::open(&request.meters)?.map(|meters| NodeBudget::new(meters, budget));
    let budget = match &mut node {
        Some(node) => node.first_share().map_err(BudgetError::Meter)?,
        None => budget,
    };
    let mut devices = budgeted_devices(&mut gpus);
    for note in request.add_options(&mut devices)? {
        observer.note(&note);
    }
    let signals = SignalSource::listen()?;
    let mut note = |text: &str| observer.note(text);
    let leased = Lease::take_ceilings(&descriptors(&gpus), guard, &signals, &mut note);
    let (lease, refused) = leased?;
    let mut unleased = Vec::new();
    for (id, refusal) in &refused {
        let place = gpus.iter().position(|gpu| gpu.descriptor().id == *id);
        let Some(place) = place else { continue };
        if let Some(error) = other_budget(&gpus[place], refusal) {
            lease.release(&mut note)?;
            return Err(error.into());
        }
        let is_held = matches!(refusal, Refusal::Journal(JournalError::Held { .. }));
        devices[place].1.is_settable &= is_held;
        unleased.push((place, is_held));
        note(&format!(
            "GPU {}: {refusal}; its power counts, but this budget {}",
            gpus[place].index(),
            match is_held {
                true =>
                    "cannot cap it until it is free, except through a `sweetspot hold` that runs there",
                false => "cannot cap it",
            }
        ));
    }
    let config = BudgetConfig {
        budget,
        gpus: devices.iter().map(|(_, device)| *device).collect(),
    };
    if unleased.len() == gpus.len()
        && let Some((_, refusal)) = refused.first()
    {
        lease.release(&mut note)?;
        return Err(BudgetError::NothingSettable(refusal.to_string()).into());
    }
    let started = start(request, &config, &unleased, gpus, cap_file, node, observer);
    let (budget_loop, budgeter) = match started {
        Ok(started) => started,
        Err(error) => {
            lease.release(&mut |text| observer.note(text))?;
            return Err(error);
        }
    };
    run(budget_loop, budgeter, lease, &signals, observer)
}

/// Opens everything that the loop needs.
fn start(
    request: &BudgetRequest,
    config: &BudgetConfig,
    unleased: &[(usize, bool)],
    gpus: Vec<Gpu>,
    cap_file: Option<CapFile>,
    node: Option<NodeBudget>,
    observer: &mut dyn Observer,
) -> Result<(BudgetLoop, Budgeter), SessionError> {
    let budgeter = Budgeter::new(config).map_err(BudgetError::from)?;
    let machine = Machine::detect(open_host()?.driver_version().ok());
    let begin = MonotonicClock.now();
    let mut opened = Vec::new();
    for (number, (gpu, device)) in gpus.into_iter().zip(&config.gpus).enumerate() {
        let sensor = best_sensor(gpu.descriptor()).ok_or_else(|| DevicesError::NotSupported {
            device: gpu.descriptor().name.clone(),
            problem: "this GPU has no power sensor, which budget needs".to_owned(),
        })?;
        let reader = PowerReader::start(gpu.reopen()?, sensor, begin)
            .map_err(SessionError::system("cannot start a thread to read power"))?;
        let refused = unleased.iter().find(|(place, _)| *place == number);
        let reservation = match refused {
            None => Reservation::Own,
            Some((_, true)) => Reservation::Other,
            Some((_, false)) => Reservation::Refused,
        };
        opened.push(BudgetedGpu::new(gpu, *device, reservation, reader));
    }
    let socket = match ControlSocket::open(ControlledVerb::Budget) {
        Ok(socket) => Some(socket),
        Err(problem) => {
            observer.note(&format!(
                "cannot open the control socket: {problem}; `sweetspot budget set` cannot change the budget"
            ));
            None
        }
    };
    let mut budget_loop = BudgetLoop::new(opened, cap_file, socket, machine, begin, request.time);
    budget_loop.node = node;
    Ok((budget_loop, budgeter))
}

/// Runs the loop, and restores the GPUs whatever comes of it.
fn run(
    mut budget_loop: BudgetLoop,
    mut budgeter: Budgeter,
    mut lease: Lease<'_>,
    signals: &SignalSource,
    observer: &mut dyn Observer,
) -> Result<BudgetResult, SessionError> {
    let done = budget_loop.run(&mut budgeter, &mut lease, signals, observer);
    observer.clear();
    // Holds get their own caps again before the GPUs do.
    budget_loop.restore_holds();
    let signal = signals.received();
    let restored = lease.release(&mut |text| observer.note(text));
    match (done, signal) {
        (Err(error), None) => Err(error.after_release(&restored)),
        (_, signal) => Ok(budget_loop.into_result(&budgeter, signal, restored?)),
    }
}

/// The GPUs that share the budget; those that no longer respond are left out, with a message.
fn select_gpus(
    request: &BudgetRequest,
    observer: &mut dyn Observer,
) -> Result<Vec<Gpu>, SessionError> {
    let gpus = all_gpus(open_host()?.as_ref())?;
    let gpus = select(gpus, request.device.as_deref(), MigSlices::Exclude)?;
    let (lost, working): (Vec<Gpu>, Vec<Gpu>) = gpus.into_iter().partition(|gpu| gpu.is_lost());
    for gpu in &lost {
        let lost = DevicesError::Lost(gpu.descriptor().name.clone());
        if working.is_empty() {
            return Err(lost.into());
        }
        observer.note(&format!("GPU {}: {lost}; it gets no power", gpu.index()));
    }
    Ok(working)
}

/// What each GPU may get, with its index. The cap that a GPU has now is the highest: its owner has chosen it.
fn budgeted_devices(gpus: &mut [Gpu]) -> Vec<(u32, BudgetedDevice)> {
    let devices = gpus.iter_mut().map(|gpu| {
        let range = cap_range(gpu.descriptor());
        let now = gpu.power_limits().ok().map(|limits| limits.requested);
        let device = match (range, now) {
            (Some((min, max)), now) => {
                let highest = now.map_or(max, |now| now.min(max));
                BudgetedDevice::new(min.min(highest), highest)
            }
            (None, now) => {
                let cap = now.unwrap_or(Watts::new(1.0));
                BudgetedDevice {
                    is_settable: false,
                    ..BudgetedDevice::new(cap, cap)
                }
            }
        };
        (gpu.index(), device)
    });
    devices.collect()
}

/// The error if another budget is why a GPU cannot be leased.
fn other_budget(gpu: &Gpu, refusal: &Refusal) -> Option<BudgetError> {
    if !matches!(refusal, Refusal::Journal(JournalError::Held { .. })) {
        return None;
    }
    let pids = running_pids(ControlledVerb::Budget);
    let text = refusal.to_string();
    let mut numbers = text.split(|letter: char| !letter.is_ascii_digit());
    let is_named = |pid: &&u32| numbers.any(|number| number == pid.to_string());
    let pid = *pids.iter().find(is_named)?;
    let gpu = format!("GPU {}", gpu.index());
    Some(BudgetError::AlreadyRunning { pid, gpu })
}
