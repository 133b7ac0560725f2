//! Signals that ask this program to end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use sweetspot_guard::signals_not_ignored;

use crate::WorkloadError;

/// Signals that follow the first one sooner are the same request: a scheduler sends one to the process and
/// one to its group.
const SAME_REQUEST: Duration = Duration::from_millis(500);

/// Between two looks for a signal while time passes.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Takes a signal, and whether it has to be passed on to the command.
type SignalReport = Box<dyn FnMut(i32, bool) + Send>;

/// Catches SIGINT, SIGTERM, SIGHUP and SIGQUIT for as long as a copy of it lives. Signals that this program
/// was started to ignore, as `nohup` does, stay ignored.
#[derive(Clone)]
pub struct SignalSource {
    listener: Arc<Listener>,
}

struct Listener {
    received: Arc<Received>,
    registered: Vec<SigId>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Whether a signal does what it does to any program. signal-hook keeps its handlers, so that signals would be
/// swallowed after the last source is gone.
static DEFAULT_ACTION: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// How many sources there are.
static SOURCES: Mutex<usize> = Mutex::new(0);

#[derive(Default)]
struct Received {
    /// The last signal; 0 where there was none. It is stored where the signal is caught: a command that the
    /// same signal ended may be over before the thread has woken up, and what it left would go on.
    last: Arc<AtomicUsize>,
    /// All that came, in order.
    all: Mutex<Vec<i32>>,
    first_at: OnceLock<Instant>,
    is_repeated: AtomicBool,
    on_signal: Mutex<Option<SignalReport>>,
}

impl SignalSource {
    /// Begins to catch signals.
    pub fn listen() -> Result<Self, WorkloadError> {
        let caught = signals_not_ignored(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT]);
        let failed = WorkloadError::system("signals cannot be caught");
        let received = Arc::new(Received::default());
        let mut registered = Vec::new();
        for signal in &caught {
            let last = received.last.clone();
            let stored = signal_hook::flag::register_usize(*signal, last, *signal as usize);
            registered.push(stored.map_err(&failed)?);
        }
        take_over(&caught).map_err(&failed)?;
        let mut signals = Signals::new(caught).map_err(&failed)?;
        let handle = signals.handle();
        let of_thread = received.clone();
        let thread = std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for signal in signals.forever() {
                    of_thread.take(signal);
                }
            })
            .map_err(WorkloadError::system("no thread to wait for signals with"))?;
        Ok(Self {
            listener: Arc::new(Listener {
                received,
                registered,
                handle,
                thread: Some(thread),
            }),
        })
    }

    /// The last signal that came, if any did.
    pub fn received(&self) -> Option<i32> {
        let signal = self.listener.received.last.load(Ordering::Acquire);
        (signal != 0).then_some(signal as i32)
    }

    /// The signals that came after the first so many.
    pub(crate) fn after(&self, count: usize) -> Vec<i32> {
        let all = self.listener.received.all.lock();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        all.get(count..).unwrap_or_default().to_vec()
    }

    /// Whether another signal came well after the first: the user does not want to wait any longer.
    pub fn is_repeated(&self) -> bool {
        self.listener.received.is_repeated.load(Ordering::Acquire)
    }

    /// Has every signal reported at once, in the thread that catches them; one that came already too.
    pub(crate) fn on_signal(&self, mut report: SignalReport) {
        let received = &self.listener.received;
        let mut on_signal = received
            .on_signal
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // One that the thread has not taken yet is reported by the thread.
        if let Some(signal) = self.received().filter(|_| !self.after(0).is_empty()) {
            report(signal, is_for_command(signal));
        }
        *on_signal = Some(report);
    }

    /// Has no more signals reported.
    pub(crate) fn report_no_more(&self) {
        let on_signal = &self.listener.received.on_signal;
        *on_signal.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Lets time pass until a moment, unless a signal comes.
    pub fn wait_until(&self, until: Instant) -> Result<(), WorkloadError> {
        loop {
            if let Some(signal) = self.received() {
                return Err(WorkloadError::Interrupted(signal));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK_EVERY));
        }
    }
}

impl Received {
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

/// Has signals reported to a source, and no longer do what they do to any program.
fn take_over(caught: &[i32]) -> std::io::Result<()> {
    static REGISTERED: Mutex<Vec<i32>> = Mutex::new(Vec::new());
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    for signal in caught {
        if !registered.contains(signal) {
            let is_default = DEFAULT_ACTION.clone();
            signal_hook::flag::register_conditional_default(*signal, is_default)?;
            registered.push(*signal);
        }
    }
    *SOURCES.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    DEFAULT_ACTION.store(false, Ordering::Release);
    Ok(())
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Whether a signal has to be passed on to the command: a terminal sends its own to the command as well.
fn is_for_command(signal: i32) -> bool {
    !(matches!(signal, SIGINT | SIGQUIT) && is_in_foreground())
}

/// Whether this process is in the foreground of a terminal, which then sends Ctrl-C to the command too.
fn is_in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| rustix::termios::tcgetpgrp(&terminal) == Ok(getpgrp()))
}

/// Passes a signal on to a command that did not get it.
pub(crate) fn pass_signal(pid: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal).filter(|_| is_for_command(signal)) {
        let _ = kill_process(pid, signal);
    }
}
