//! The one loop that runs a command.

use std::time::{Duration, Instant};

use sweetspot_device::{Clock, Moment, MonotonicClock};
use sweetspot_guard::{CommandExit, WorkloadEnd, adopt_orphans};
use sweetspot_link::Control;

use crate::WorkloadError;
use crate::command::CommandSpec;
use crate::lease::Lease;
use crate::output::OutputReader;
use crate::process::{OwnChild, end_descendants, end_guarded, start_guarded, wait_guarded};
use crate::progress::{ProgressCounter, ProgressReader, WorkloadEvent};
use crate::signals::SignalSource;

/// How long the last output of a command is read, where a process that it left may hold the pipe open.
const LAST_OUTPUT: Duration = Duration::from_millis(100);

/// How long a signal to a process group may take from one process of it to the next.
const SIGNAL_LAG: Duration = Duration::from_millis(50);

/// Limits on a run.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// The longest time between two calls of the handler.
    pub poll_interval: Duration,
    /// What a signal to this program does to the command, beyond being passed on to it.
    pub on_signal: OnSignal,
    /// The longest that the command may run.
    pub timeout: Option<Duration>,
}

/// What a signal to this program does to the command, beyond being passed on to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSignal {
    /// The command is ended after this grace period, or at once by a second signal.
    EndAfter(Duration),
    /// The command takes as long as it likes, until a second signal ends it.
    EndAtSecond,
    /// Nothing: the command decides, and so do the processes that it leaves behind.
    PassOn,
}

/// How long a command may take to end after a signal, where devices have to be put back.
const GRACE: Duration = Duration::from_secs(5);

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_millis(50),
            on_signal: OnSignal::EndAfter(GRACE),
            timeout: None,
        }
    }
}

/// What a verb does while its command runs.
pub trait RunHandler {
    /// Why it gives up.
    type Error: From<WorkloadError>;

    /// Takes what the command reported since the last call. Called at least once in every poll interval, and
    /// once more after the exit.
    fn poll(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        events: Vec<WorkloadEvent>,
    ) -> Result<(), Self::Error>;

    /// The command is started right after this. Returns the moment from which its time counts.
    fn starting(&mut self) -> Moment {
        MonotonicClock.now()
    }

    /// The command has exited just now; what it reported last is still to come.
    fn exited(&mut self) {}
}

/// A handler that does nothing with what the command reports.
pub struct NoHandler;

impl RunHandler for NoHandler {
    type Error = WorkloadError;

    fn poll(
        &mut self,
        _: &mut RunInProgress<'_, '_>,
        _: Vec<WorkloadEvent>,
    ) -> Result<(), WorkloadError> {
        Ok(())
    }
}

/// A command that runs.
pub struct RunInProgress<'r, 'g> {
    lease: Option<&'r mut Lease<'g>>,
    /// The command, where it is a child of this program and not of a guard.
    child: Option<OwnChild>,
    reader: &'r mut ProgressReader,
    signals: &'r SignalSource,
    began: Moment,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Just before the start.
    pub began: Moment,
    /// The exit.
    pub exited: Moment,
    /// How the command ended.
    pub ended: CommandExit,
    /// Whether processes of it were still there at its exit.
    pub left_processes: bool,
    /// A signal that this program got meanwhile.
    pub interrupted: Option<i32>,
    /// Whether it was ended because it took too long.
    pub timed_out: bool,
    /// The end of its output, where that was read.
    pub output: String,
}

impl RunOutcome {
    /// The exit code as shells give it.
    pub fn exit_code(&self) -> i32 {
        match self.ended {
            CommandExit::Code(code) => code,
            CommandExit::Signal(signal) => 128 + signal,
        }
    }
}

/// Starts a command, waits for its exit and lets `handler` work meanwhile. With a lease the guard runs the
/// command, so that it ends with the lease. A signal is passed on to the command; one that does not end
/// within the grace period, or by the time of a second signal, is ended with everything that it started.
pub fn run_until_exit<H: RunHandler>(
    command: &CommandSpec,
    limits: RunLimits,
    lease: Option<&mut Lease<'_>>,
    signals: &SignalSource,
    reader: &mut ProgressReader,
    handler: &mut H,
) -> Result<RunOutcome, H::Error> {
    if limits.on_signal != OnSignal::PassOn {
        // What a command leaves behind becomes this process's child, and is noticed.
        adopt_orphans();
    }
    let is_guarded = lease.is_some();
    let began = handler.starting();
    let mut run = RunInProgress::start(command, began, lease, signals, reader)?;
    tracing::info!(command = ?command.words, is_guarded, "command started");
    let mut supervision = Supervision::new(limits);
    let ended = supervision.until_exit(&mut run, handler);
    let end = match ended {
        Ok(end) => end,
        Err(problem) => {
            tracing::warn!("the run cannot go on");
            run.abandon();
            return Err(problem);
        }
    };
    handler.exited();
    tracing::info!(ended = ?end.exit, left_processes = end.has_descendants, "command exited");
    if end.has_descendants {
        // The signal that ended the command may be on its way to this process.
        let _ = signals.wait_until(Instant::now() + SIGNAL_LAG);
    }
    let interrupted = supervision.interrupted.or_else(|| signals.received());
    let may_hold_pipe = end.has_descendants || interrupted.is_some();
    let exited = end.at.max(run.began);
    let events = run
        .reader
        .finish(exited, may_hold_pipe.then_some(LAST_OUTPUT));
    let handled = handler.poll(&mut run, events);
    let ends_orphans = interrupted.is_some() && limits.on_signal != OnSignal::PassOn;
    if ends_orphans && end.has_descendants && run.child.is_some() {
        end_descendants();
    }
    handled?;
    Ok(RunOutcome {
        began: run.began,
        exited,
        ended: end.exit,
        left_processes: end.has_descendants,
        interrupted,
        timed_out: supervision.timed_out,
        output: run.reader.last_lines(),
    })
}

impl<'r, 'g> RunInProgress<'r, 'g> {
    fn start(
        command: &CommandSpec,
        began: Moment,
        mut lease: Option<&'r mut Lease<'g>>,
        signals: &'r SignalSource,
        reader: &'r mut ProgressReader,
    ) -> Result<Self, WorkloadError> {
        let mut environment = command.environment.clone();
        environment.extend(reader.environment());
        if command.reads_output() {
            // Python would hold lines back otherwise, as it writes to no terminal.
            environment.push(("PYTHONUNBUFFERED".to_owned(), "1".into()));
        }
        let (child, pipes) = match &mut lease {
            Some(lease) => (None, start_guarded(lease.guard(), command, &environment)?),
            None => {
                let (child, pipes) = OwnChild::start(command, &environment)?;
                (Some(child), pipes)
            }
        };
        let output = OutputReader::start(command, pipes);
        let mut run = Self {
            lease,
            child,
            reader,
            signals,
            began,
        };
        match output {
            Ok(output) => run.reader.start(began, output),
            Err(problem) => {
                run.abandon();
                return Err(problem);
            }
        }
        Ok(run)
    }

    /// The lease, where devices are leased.
    pub fn lease(&mut self) -> Option<&mut Lease<'g>> {
        self.lease.as_deref_mut()
    }

    /// The words that the command reads from its link, where it has one.
    pub fn control(&self) -> Option<&Control> {
        self.reader.control()
    }

    /// What the command has reported so far.
    pub fn progress(&self) -> &ProgressCounter {
        self.reader.counter()
    }

    /// The signal that came, if one did.
    pub fn interrupted(&self) -> Option<i32> {
        self.signals.received()
    }

    /// Just before the start.
    pub fn began(&self) -> Moment {
        self.began
    }

    fn wait(&mut self, at_most: Duration) -> Result<Option<WorkloadEnd>, WorkloadError> {
        match (&mut self.child, &mut self.lease) {
            (Some(child), _) => child.wait(at_most),
            (None, Some(lease)) => wait_guarded(lease.guard(), at_most),
            (None, None) => Ok(None),
        }
    }

    /// A guard passes signals on by itself.
    fn pass_signal(&self, signal: i32) {
        if let Some(child) = &self.child {
            child.pass_signal(signal);
        }
    }

    fn end(&mut self) -> Result<(), WorkloadError> {
        match &mut self.lease {
            Some(lease) => end_guarded(lease.guard()),
            None => {
                end_descendants();
                Ok(())
            }
        }
    }

    /// The run cannot go on: the command must not outlive it. Where the guard is gone, the release of the
    /// lease ends what it ran.
    fn abandon(&mut self) {
        let _ = self.end();
    }
}

/// What the loop keeps in mind.
struct Supervision {
    limits: RunLimits,
    began: Instant,
    interrupted: Option<i32>,
    /// Signals that were passed on.
    passed_on: usize,
    give_up_at: Option<Instant>,
    timed_out: bool,
}

impl Supervision {
    fn new(limits: RunLimits) -> Self {
        Self {
            limits,
            began: Instant::now(),
            interrupted: None,
            passed_on: 0,
            give_up_at: None,
            timed_out: false,
        }
    }

    fn until_exit<H: RunHandler>(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        handler: &mut H,
    ) -> Result<WorkloadEnd, H::Error> {
        loop {
            if let Some(end) = run.wait(self.limits.poll_interval)? {
                return Ok(end);
            }
            self.take_signals(run);
            if self.give_up_at.is_some_and(|at| Instant::now() >= at) {
                tracing::warn!("the command did not end after a signal: ending it");
                run.end()?;
                return Ok(WorkloadEnd {
                    exit: CommandExit::Signal(self.interrupted.unwrap_or(0)),
                    at: MonotonicClock.now(),
                    has_descendants: false,
                });
            }
            let limit = self.limits.timeout;
            if limit.is_some_and(|limit| self.began.elapsed() > limit) && !self.timed_out {
                self.timed_out = true;
                tracing::warn!(?limit, "the command takes too long: ending it");
                run.end()?;
            }
            let events = run.reader.poll();
            handler.poll(run, events)?;
        }
    }

    fn take_signals(&mut self, run: &RunInProgress<'_, '_>) {
        let Some(signal) = run.signals.received() else {
            return;
        };
        self.interrupted = Some(signal);
        for signal in run.signals.after(self.passed_on) {
            self.passed_on += 1;
            tracing::info!(signal, "signal received");
            run.pass_signal(signal);
        }
        let now = Instant::now();
        match self.limits.on_signal {
            OnSignal::PassOn => {}
            _ if run.signals.is_repeated() => self.give_up_at = Some(now),
            OnSignal::EndAfter(grace) => {
                self.give_up_at.get_or_insert(now + grace);
            }
            OnSignal::EndAtSecond => {}
        }
    }
}
