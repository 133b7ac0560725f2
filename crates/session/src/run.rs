//! `run`: a command at a setting, and everything as before afterwards.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use sweetspot_device::{Descriptor, Device, Domain, Knob, KnobDescriptor, Settings};
use sweetspot_guard::{
    Ended, Guard, GuardError, Message, Start, adopt_orphans, end_all, not_ignored,
};
use sweetspot_quantity::Quantity;

use crate::SessionError;
use crate::gpus::{Slices, all_gpus, guard_folder, open_nvml, select};

/// A command and the setting it is to run at.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// Which GPUs, where the user says.
    pub device: Option<String>,
    /// The setting, the same on each.
    pub settings: Settings,
    /// No write is allowed.
    pub read_only: bool,
    /// The command.
    pub command: Vec<OsString>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// The command, or the signal that ended the run before it.
    pub ended: Ended,
    /// Whether every device is as before.
    pub restored: bool,
}

/// How long a workload may take to end after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// Runs it. `guard` makes the program that serves as guard; `tell` takes what the user should know.
pub fn run(
    request: &RunRequest,
    guard: impl Fn() -> Command,
    tell: &mut dyn FnMut(&str),
) -> Result<Ran, SessionError> {
    if request.settings == Settings::default() {
        return Err(SessionError::NothingToSet);
    }
    if request.read_only {
        return Err(SessionError::ReadOnly);
    }
    let gpus = select(
        all_gpus(open_nvml()?)?,
        request.device.as_deref(),
        Slices::No,
    )?;
    if let Some(lost) = gpus.iter().find(|gpu| gpu.is_lost()) {
        return Err(SessionError::Lost(lost.descriptor().name.clone()));
    }
    let devices: Vec<Descriptor> = gpus.iter().map(|gpu| gpu.descriptor().clone()).collect();
    for device in &devices {
        check(device, &request.settings)?;
    }
    let folder = guard_folder();
    sweetspot_guard::Journal::open(&folder)?;
    let system = |what: &'static str| move |problem| SessionError::System { what, problem };
    // Should the guard be killed, what it ran becomes this process' to end.
    adopt_orphans();
    let signals = not_ignored(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT]);
    let mut signals = Signals::new(signals).map_err(system("signals cannot be caught"))?;
    let handle = signals.handle();
    let mut running = Guard::start(guard(), &folder)?;
    let interrupted = Arc::new(AtomicI32::new(0));
    let (flag, interrupter) = (interrupted.clone(), running.interrupter());
    let watcher = std::thread::spawn(move || watch(&mut signals, &flag, interrupter));
    let done = at_settings(&mut running, &devices, request, tell);
    let signal = interrupted.load(Ordering::Acquire);
    let mut released = match &done {
        Err(SessionError::Guard(GuardError::Gone(_))) => {
            replace_guard(running, guard(), &devices, tell)
        }
        _ => running.release(signal != 0),
    };
    handle.close();
    let _ = watcher.join();
    for problem in released.iter().flatten() {
        tell(problem);
    }
    let ended = match (signal, done) {
        (0, Ok(ended)) => ended,
        (0, Err(error)) => return Err(error),
        (signal, _) => {
            if let Err(error) = &released {
                tell(&error.to_string());
                released = Ok(vec![error.to_string()]);
            }
            Ended::Signal(signal)
        }
    };
    Ok(Ran {
        ended,
        restored: released?.is_empty(),
    })
}

/// The guard was killed: ends what it ran, and has another put back what it left.
fn replace_guard(
    gone: Guard,
    program: Command,
    devices: &[Descriptor],
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<String>, GuardError> {
    drop(gone);
    end_all(Duration::from_millis(300));
    let mut guard = Guard::start(program, &guard_folder())?;
    for note in guard.lease(devices.iter().map(|device| device.id.clone()).collect())? {
        tell(&note);
    }
    guard.release(false)
}

/// Passes signals on to the guard, which puts the devices back before anything else.
fn watch(signals: &mut Signals, interrupted: &AtomicI32, mut interrupt: impl FnMut(i32, bool)) {
    for signal in signals.forever() {
        interrupted.store(signal, Ordering::Release);
        // A terminal has sent its own signals to the workload as well.
        let from_terminal = matches!(signal, SIGINT | SIGQUIT) && in_foreground();
        interrupt(signal, !from_terminal);
    }
}

/// Whether this process is in the foreground of a terminal, which then sends Ctrl-C to the workload too.
pub(crate) fn in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| rustix::termios::tcgetpgrp(&terminal) == Ok(getpgrp()))
}

/// A terminal has sent its own signals to the command as well; the others are passed on.
pub fn pass_signal(pid: Pid, signal: i32) {
    let signal = match signal {
        SIGTERM => Signal::TERM,
        SIGHUP => Signal::HUP,
        SIGINT if !in_foreground() => Signal::INT,
        SIGQUIT if !in_foreground() => Signal::QUIT,
        _ => return,
    };
    let _ = kill_process(pid, signal);
}

fn at_settings(
    guard: &mut Guard,
    devices: &[Descriptor],
    request: &RunRequest,
    tell: &mut dyn FnMut(&str),
) -> Result<Ended, SessionError> {
    let ids: Vec<_> = devices.iter().map(|device| device.id.clone()).collect();
    for note in guard.lease(ids)? {
        tell(&note);
    }
    for device in devices {
        let applied = guard.apply(&device.id, &request.settings)?;
        if let Some(cap) = applied.power_cap
            && cap.shortfall.is_some()
        {
            tell(&format!(
                "{}: asked for {}, the device enforces {} (another limit of the board is lower)",
                device.name, cap.requested, cap.enforced
            ));
        }
    }
    guard.run(Start {
        command: request
            .command
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect(),
        environment: Vec::new(),
        process_group: getpgrp().as_raw_nonzero().get(),
    })?;
    wait(guard)
}

fn wait(guard: &mut Guard) -> Result<Ended, SessionError> {
    match guard.wait()? {
        Message::Ended(ended) => Ok(ended),
        // The devices are back; the workload may tidy up for a while.
        Message::Released(problems) => {
            guard.keep(problems);
            match guard.wait_for(GRACE) {
                Some(Message::Ended(ended)) => Ok(ended),
                _ => Ok(Ended::Code(0)),
            }
        }
    }
}

/// Whether the device offers the setting, before anything is touched.
fn check(device: &Descriptor, settings: &Settings) -> Result<(), SessionError> {
    let bad = |problem: String| SessionError::Setting {
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
            "{knob} {value} is not offered: {}",
            domain.offered_near(value)
        ))
    }
}
