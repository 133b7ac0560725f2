//! Devices leased from a guard for as long as a command works with them.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use sweetspot_device::{Applied, Descriptor, DeviceId, Settings};
use sweetspot_guard::{
    Guard, GuardError, Journal, RestoreError, adopt_orphans, end_all, not_ignored,
};

use crate::SessionError;
use crate::gpus::guard_folder;

/// How long a workload may take to end after a signal.
pub const GRACE: Duration = Duration::from_secs(5);

/// The program that serves as guard.
pub type GuardProgram<'a> = &'a dyn Fn() -> Command;

/// Leased devices. Signals reach the guard at once, which puts everything back before anything else.
pub struct Lease<'a> {
    guard: Guard,
    program: GuardProgram<'a>,
    devices: Vec<DeviceId>,
    interrupted: Arc<AtomicUsize>,
    noting: Vec<SigId>,
    handle: Handle,
    watcher: Option<JoinHandle<()>>,
}

impl<'a> Lease<'a> {
    /// Starts a guard and takes the devices; `tell` takes what there is to know about how they were found.
    pub fn take(
        devices: &[Descriptor],
        program: GuardProgram<'a>,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, SessionError> {
        let folder = guard_folder();
        Journal::open(&folder)?;
        let system = |what: &'static str| move |problem| SessionError::System { what, problem };
        // Should the guard be killed, what it ran becomes this process' to end.
        adopt_orphans();
        let signals = not_ignored(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT]);
        let interrupted = Arc::new(AtomicUsize::new(0));
        let mut noting = Vec::new();
        for signal in &signals {
            // Noted where it is caught: a workload that the same signal ended may be over before the watcher
            // has woken up, and what it left would go on.
            let flag = interrupted.clone();
            let noted = signal_hook::flag::register_usize(*signal, flag, *signal as usize);
            noting.push(noted.map_err(system("signals cannot be caught"))?);
        }
        let mut signals = Signals::new(signals).map_err(system("signals cannot be caught"))?;
        let handle = signals.handle();
        let guard = Guard::start(program(), &folder)?;
        let (flag, interrupter) = (interrupted.clone(), guard.interrupter());
        let watcher = std::thread::spawn(move || watch(&mut signals, &flag, interrupter));
        let mut lease = Self {
            guard,
            program,
            devices: devices.iter().map(|device| device.id.clone()).collect(),
            interrupted,
            noting,
            handle,
            watcher: Some(watcher),
        };
        match lease.guard.lease(lease.devices.clone()) {
            Ok(notes) => notes.iter().for_each(|note| tell(&note.to_string())),
            Err(error) => {
                let signal = lease.interrupted();
                lease.release(tell)?;
                return Err(match signal {
                    Some(signal) => SessionError::Interrupted(signal),
                    None => error.into(),
                });
            }
        }
        Ok(lease)
    }

    /// The signal that came, if one did; everything is put back then.
    pub fn interrupted(&self) -> Option<i32> {
        noted(&self.interrupted)
    }

    /// Where signals are noted.
    pub fn flag(&self) -> Arc<AtomicUsize> {
        self.interrupted.clone()
    }

    /// Brings a device's knobs to a state.
    pub fn apply(&mut self, device: &DeviceId, settings: &Settings) -> Result<Applied, GuardError> {
        self.guard.apply(device, settings)
    }

    /// Brings a device back to what was set before.
    pub fn put_back(&mut self, device: &DeviceId) -> Result<(), GuardError> {
        self.guard.put_back(device)
    }

    /// The guard, to run the workload.
    pub fn guard(&mut self) -> &mut Guard {
        &mut self.guard
    }

    /// Lets everything go, and says whether every device is as before. What the workload left running goes
    /// on, unless a signal came.
    pub fn release(mut self, tell: &mut dyn FnMut(&str)) -> Result<bool, SessionError> {
        let signal = self.interrupted();
        let released = match self.guard.release(signal.is_some()) {
            // Killed: what it ran is ended, and another puts back what it left.
            Err(GuardError::Gone(_)) => replace(self.program, &self.devices, tell),
            released => released,
        };
        self.handle.close();
        for noting in self.noting.drain(..) {
            signal_hook::low_level::unregister(noting);
        }
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        let problems: Vec<String> = match (signal, released) {
            (_, Ok(problems)) => problems.iter().map(RestoreError::to_string).collect(),
            (Some(_), Err(error)) => vec![error.to_string()],
            (None, Err(error)) => return Err(error.into()),
        };
        for problem in &problems {
            tell(problem);
        }
        Ok(problems.is_empty())
    }
}

/// What is said of a guard that is gone, once it is known what became of the devices.
pub fn once_released(problem: SessionError, restored: &Result<bool, SessionError>) -> SessionError {
    match problem {
        SessionError::Guard(GuardError::Gone(why)) if matches!(restored, Ok(true)) => {
            GuardError::Replaced(why).into()
        }
        other => other,
    }
}

/// The signal that was noted, if one was.
pub fn noted(flag: &AtomicUsize) -> Option<i32> {
    let signal = flag.load(Ordering::Acquire) as i32;
    (signal != 0).then_some(signal)
}

/// Notes signals without a lease.
pub fn note_signals() -> Result<Arc<AtomicUsize>, SessionError> {
    let flag = Arc::new(AtomicUsize::new(0));
    for signal in not_ignored(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT]) {
        signal_hook::flag::register_usize(signal, flag.clone(), signal as usize).map_err(
            |problem| SessionError::System {
                what: "signals cannot be caught",
                problem,
            },
        )?;
    }
    adopt_orphans();
    Ok(flag)
}

/// Ends what a guard that was killed ran, and has another put back what it left.
fn replace(
    program: GuardProgram<'_>,
    devices: &[DeviceId],
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<RestoreError>, GuardError> {
    end_all(Duration::from_millis(300));
    let guard = Guard::start(program(), &guard_folder());
    // Without another guard the devices stay as the first one left them.
    let mut guard = guard.map_err(|error| GuardError::Gone(error.to_string()))?;
    for note in guard.lease(devices.to_vec())? {
        tell(&note.to_string());
    }
    guard.release(false)
}

/// Passes signals on to the guard, which puts the devices back before anything else.
fn watch(signals: &mut Signals, interrupted: &AtomicUsize, mut interrupt: impl FnMut(i32, bool)) {
    for signal in signals.forever() {
        interrupted.store(signal as usize, Ordering::Release);
        // A terminal has sent its own signals to the workload as well.
        let from_terminal = matches!(signal, SIGINT | SIGQUIT) && in_foreground();
        interrupt(signal, !from_terminal);
    }
}

/// Whether this process is in the foreground of a terminal, which then sends Ctrl-C to the workload too.
fn in_foreground() -> bool {
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
