//! Catches the signals with which a user or a scheduler asks this program to exit.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use sweetspot_guard::{CommandExit, signals_not_ignored};

use crate::WorkloadError;

/// Signals within this time after the first one count as the same request to exit: a scheduler sends a signal
/// both to the process and to its group.
const SAME_REQUEST: Duration = Duration::from_millis(500);

/// The interval between two checks for a signal during a wait.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A function that receives a signal's number, and whether the signal must be passed on to the command.
type SignalReport = Box<dyn FnMut(i32, bool) + Send>;

/// Catches SIGINT, SIGTERM, SIGHUP and SIGQUIT as long as this value or a clone of it exists. Signals that were ignored
/// when this program started, as under `nohup`, stay ignored.
#[derive(Clone)]
pub struct SignalSource {
    listener: Arc<Listener>,
}

/// The registered signal handlers, and the thread that waits for signals.
struct Listener {
    received: Arc<Received>,
    registered: Vec<SigId>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Whether signals have their default action. It is restored when the last source is dropped: signal-hook
/// never removes its handlers, so signals would otherwise have no effect from then on.
static DEFAULT_ACTION: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// The number of [`SignalSource`]s that exist, without clones.
static SOURCE_COUNT: Mutex<usize> = Mutex::new(0);

/// The signals that have arrived so far.
#[derive(Default)]
struct Received {
    /// The number of the last signal, or 0. The signal handler itself stores it, because the thread may wake up too
    /// late: a command that the same signal ended may have exited by then, and processes that it left would go on.
    last: Arc<AtomicUsize>,
    /// The numbers of all signals, in order of arrival.
    all: Mutex<Vec<i32>>,
    first_at: OnceLock<Instant>,
    is_repeated: AtomicBool,
    on_signal: Mutex<Option<SignalReport>>,
}

impl SignalSource {
    /// Starts to catch signals; until then they have their default action.
    pub fn listen() -> Result<Self, WorkloadError> {
        let caught = signals_not_ignored(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT]);
        let failed = WorkloadError::system("cannot catch signals");
        let received = Arc::new(Received::default());
        let mut registered = Vec::new();
        for signal in &caught {
            let last = received.last.clone();
            let stored = signal_hook::flag::register_usize(*signal, last, *signal as usize);
            registered.push(stored.map_err(&failed)?);
        }
        disable_default_action(&caught).map_err(&failed)?;
        let mut signals = Signals::new(caught).map_err(&failed)?;
        let handle = signals.handle();
        let received_by_thread = received.clone();
        let thread = std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for signal in signals.forever() {
                    received_by_thread.take(signal);
                }
            })
            .map_err(WorkloadError::system(
                "cannot start a thread to wait for signals",
            ))?;
        Ok(Self {
            listener: Arc::new(Listener {
                received,
                registered,
                handle,
                thread: Some(thread),
            }),
        })
    }

    /// The last signal that has arrived, if any.
    pub fn received(&self) -> Option<i32> {
        let signal = self.listener.received.last.load(Ordering::Acquire);
        (signal != 0).then_some(signal as i32)
    }

    /// The signals that arrived after the first `count` ones.
    pub(crate) fn after(&self, count: usize) -> Vec<i32> {
        let all = self.listener.received.all.lock();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        all.get(count..).unwrap_or_default().to_vec()
    }

    /// Whether another signal arrived well after the first: the user does not want to wait any longer.
    pub fn is_repeated(&self) -> bool {
        self.listener.received.is_repeated.load(Ordering::Acquire)
    }

    /// Calls `report` at once for every signal, in the thread that waits for signals. A signal that has
    /// already arrived is reported too.
    pub(crate) fn on_signal(&self, mut report: SignalReport) {
        let received = &self.listener.received;
        let mut on_signal = received
            .on_signal
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A signal that the thread has not taken yet is reported by the thread.
        if let Some(signal) = self.received().filter(|_| !self.after(0).is_empty()) {
            report(signal, is_for_command(signal));
        }
        *on_signal = Some(report);
    }

    /// Calls `report` for every signal that arrives from now on, in place of an earlier report.
    pub(crate) fn on_later_signal(&self, report: SignalReport) {
        let on_signal = &self.listener.received.on_signal;
        *on_signal.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    /// Stops the calls that [`SignalSource::on_signal`] has started.
    pub(crate) fn stop_reports(&self) {
        let on_signal = &self.listener.received.on_signal;
        *on_signal.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits until the time `until`; a signal ends the wait with an error.
    pub fn wait_until(&self, until: Instant) -> Result<(), WorkloadError> {
        loop {
            if let Some(signal) = self.received() {
                return Err(WorkloadError::Interrupted(signal));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(CHECK_INTERVAL));
        }
    }
}

impl Received {
    /// Records a signal and reports it.
    fn take(&self, signal: i32) {
        let mut on_signal = self
            .on_signal
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let first_at = self.first_at.get_or_init(Instant::now);
        if first_at.elapsed() > SAME_REQUEST {
            self.is_repeated.store(true, Ordering::Release);
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(signal);
        drop(all);
        if let Some(report) = on_signal.as_mut() {
            report(signal, is_for_command(signal));
        }
    }
}

/// Counts a new source and disables the default action of its signals.
fn disable_default_action(caught: &[i32]) -> std::io::Result<()> {
    /// The signals whose default action this program controls already.
    static REGISTERED: Mutex<Vec<i32>> = Mutex::new(Vec::new());
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    for signal in caught {
        if !registered.contains(signal) {
            let is_default = DEFAULT_ACTION.clone();
            signal_hook::flag::register_conditional_default(*signal, is_default)?;
            registered.push(*signal);
        }
    }
    *SOURCE_COUNT.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    DEFAULT_ACTION.store(false, Ordering::Release);
    Ok(())
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut sources = SOURCE_COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        *sources -= 1;
        DEFAULT_ACTION.store(*sources == 0, Ordering::Release);
        drop(sources);
        self.handle.close();
        for registered in self.registered.drain(..) {
            signal_hook::low_level::unregister(registered);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether a signal must be passed on to the command. Ctrl-C need not be: the terminal sends it to the
/// command too.
fn is_for_command(signal: i32) -> bool {
    !(matches!(signal, SIGINT | SIGQUIT) && is_in_foreground())
}

/// Whether this process is in the foreground of a terminal.
fn is_in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| rustix::termios::tcgetpgrp(&terminal) == Ok(getpgrp()))
}

/// Passes a signal on to a command that has not received it.
pub(crate) fn pass_signal(pid: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal).filter(|_| is_for_command(signal)) {
        let _ = kill_process(pid, signal);
    }
}

/// A signal to a process group reaches all its processes within this time.
const SIGNAL_DELAY: Duration = Duration::from_millis(50);
/// The same for a command that a signal ended, so that this program has probably got the signal too: a busy machine may
/// take this long to run the thread that receives it.
const LONG_SIGNAL_DELAY: Duration = Duration::from_secs(1);

/// How long to wait for the signal that may have ended the command.
pub(crate) fn signal_delay(exit: CommandExit) -> Duration {
    let signal = match exit {
        CommandExit::Signal(signal) => signal,
        // A shell whose child was ended by a signal exits with this code.
        CommandExit::Code(code) => code - 128,
    };
    match signal {
        SIGHUP | SIGINT | SIGQUIT | SIGTERM => LONG_SIGNAL_DELAY,
        _ => SIGNAL_DELAY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_a_signal_ended_is_followed_by_a_longer_wait() {
        for exit in [
            CommandExit::Signal(SIGTERM),
            CommandExit::Code(128 + SIGINT),
        ] {
            assert_eq!(signal_delay(exit), LONG_SIGNAL_DELAY);
        }
        for exit in [
            CommandExit::Code(0),
            CommandExit::Code(1),
            CommandExit::Signal(9),
        ] {
            assert_eq!(signal_delay(exit), SIGNAL_DELAY);
        }
    }
}
