//! The loop that runs a command until it exits.

use std::time::{Duration, Instant};

use sweetspot_device::{Clock, Moment, MonotonicClock};
use sweetspot_guard::{CommandExit, WorkloadEnd, adopt_orphans};
use sweetspot_link::Control;

use crate::WorkloadError;
use crate::attached::AttachedProcess;
use crate::command::CommandSpec;
use crate::counter::ProgressCounter;
use crate::lease::Lease;
use crate::metrics::{MetricsReader, MetricsSource};
use crate::output::OutputReader;
use crate::process::{OwnChild, end_descendants, end_guarded, start_guarded, wait_guarded};
use crate::progress::{ProgressReader, WorkloadEvent};
use crate::recognition::RecognisedFormat;
use crate::signals::{SignalSource, signal_delay};
use crate::streams::OutputStreams;

mod supervision;

use supervision::Supervision;

/// How long the last output of a command is read if a process that it has left running may never close the pipe.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(100);

/// Time limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// The longest time between two calls of the handler.
    pub poll_interval: Duration,
    /// When the command is ended after a signal to this program. The signal itself is passed on to the command in any
    /// case.
    pub on_signal: OnSignal,
    /// The longest time that the command may run; no limit if `None`.
    pub timeout: Option<Duration>,
}

/// When the command is ended after a signal to this program. The signal itself is passed on to the command in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSignal {
    /// The command is ended after this grace period, or at once by a second signal.
    EndAfter(Duration),
    /// The command may take any time to exit, until a second signal ends it.
    EndAtSecond,
    /// Never: neither the command nor the processes that it leaves running are ended.
    PassOn,
}

/// By default, how long a command may take to exit after a signal before it is ended.
const DEFAULT_GRACE_PERIOD: Duration = Duration::from_secs(5);

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_millis(50),
            on_signal: OnSignal::EndAfter(DEFAULT_GRACE_PERIOD),
            timeout: None,
        }
    }
}

/// The work that a subcommand such as `measure` does while the user's command runs.
pub trait RunHandler {
    /// The handler's error, which ends the run early.
    type Error: From<WorkloadError>;

    /// Takes the command's reports since the last call. It is called at least once in every poll interval, and
    /// once more after the exit.
    fn poll(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        events: Vec<WorkloadEvent>,
    ) -> Result<(), Self::Error>;

    /// Called just before the command is started. Returns the moment from which the command's time counts.
    fn starting(&mut self) -> Moment {
        MonotonicClock.now()
    }

    /// Called when the command has just exited, before its last reports are read.
    fn exited(&mut self) {}
}

/// A handler that ignores the command's reports.
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

/// A running command, as its handler sees it.
pub struct RunInProgress<'r, 'g> {
    lease: Option<&'r mut Lease<'g>>,
    /// The command's process, if it is a child of this program; `None` if the guard started it.
    child: Option<OwnChild>,
    /// The process that is observed in place of a command.
    attached: Option<AttachedProcess>,
    reader: &'r mut ProgressReader,
    signals: &'r SignalSource,
    began: Moment,
}

/// How and when a run of the command ended.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The moment just before the start of the command.
    pub began: Moment,
    /// The moment of the command's exit.
    pub exited: Moment,
    /// The command's exit code, or the signal that killed it.
    pub ended: CommandExit,
    /// Whether the command has left processes running.
    pub left_processes: bool,
    /// The number of a signal that this program received during the run, if any.
    pub interrupted: Option<i32>,
    /// Whether the command was ended because it exceeded the time limit.
    pub timed_out: bool,
    /// The end of the command's output; empty if it was not stored.
    pub output: String,
}

impl RunOutcome {
    /// The exit code as a shell reports it.
    pub fn exit_code(&self) -> i32 {
        match self.ended {
            CommandExit::Code(code) => code,
            CommandExit::Signal(signal) => 128 + signal,
        }
    }
}

/// Starts a command and waits for its exit; `handler` works meanwhile. With a lease the guard runs the command, which
/// therefore ends with the lease. A signal is passed on to the command; [`RunLimits::on_signal`] says when a command
/// that does not exit is ended, with everything that it started.
pub fn run_until_exit<H: RunHandler>(
    command: &CommandSpec,
    limits: RunLimits,
    lease: Option<&mut Lease<'_>>,
    signals: &SignalSource,
    reader: &mut ProgressReader,
    handler: &mut H,
) -> Result<RunOutcome, H::Error> {
    if limits.on_signal != OnSignal::PassOn {
        // Processes that a command leaves running become children of this process, which can then detect them.
        adopt_orphans();
    }
    let is_guarded = lease.is_some();
    let began = handler.starting();
    let mut run = RunInProgress::start(command, began, lease, signals, reader)?;
    tracing::info!(command = ?command.words, is_guarded, "command started");
    let mut supervision = Supervision::new(limits);
    let end = match supervision.wait_for_exit(&mut run, handler) {
        Ok(end) => end,
        Err(problem) => {
            tracing::warn!("the run failed: ending the command");
            run.abandon();
            return Err(problem);
        }
    };
    handler.exited();
    tracing::info!(ended = ?end.exit, left_processes = end.has_descendants, "command exited");
    if end.has_descendants {
        // The signal that ended the command may reach this process a little later.
        let _ = signals.wait_until(Instant::now() + signal_delay(end.exit));
    }
    let interrupted = supervision.interrupted.or_else(|| signals.received());
    let may_hold_pipe = end.has_descendants || interrupted.is_some();
    let exited = end.at.max(run.began);
    let events = run
        .reader
        .finish(exited, may_hold_pipe.then_some(LAST_OUTPUT_TIMEOUT));
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
    /// Starts the command, as a child of this program or of the guard.
    fn start(
        command: &CommandSpec,
        began: Moment,
        mut lease: Option<&'r mut Lease<'g>>,
        signals: &'r SignalSource,
        reader: &'r mut ProgressReader,
    ) -> Result<Self, WorkloadError> {
        let metrics = command.metrics.as_ref();
        metrics.map_or(Ok(()), |source| source.check(command.attach.is_some()))?;
        if let Some(pid) = command.attach {
            let attached = AttachedProcess::open(pid)?;
            reader.start(began, None, start_metrics(metrics)?);
            return Ok(Self {
                lease,
                child: None,
                attached: Some(attached),
                reader,
                signals,
                began,
            });
        }
        let mut environment = command.environment.clone();
        environment.extend(reader.environment());
        let streams = OutputStreams::create(command, lease.is_some())?;
        let has_pipe = streams.as_ref().is_some_and(OutputStreams::has_pipe);
        if has_pipe && command.reads_output() {
            // Without this, Python buffers its output when it does not write to a terminal.
            environment.push(("PYTHONUNBUFFERED".to_owned(), "1".into()));
        }
        let child = match &mut lease {
            Some(lease) => {
                start_guarded(lease.guard(), command, &environment, streams.as_ref())?;
                None
            }
            None => Some(OwnChild::start(command, &environment, streams.as_ref())?),
        };
        let ends = streams.map(OutputStreams::into_ends);
        let output = OutputReader::start(command, ends);
        let mut run = Self {
            lease,
            child,
            attached: None,
            reader,
            signals,
            began,
        };
        match output.and_then(|output| Ok((output, start_metrics(metrics)?))) {
            Ok((output, metrics)) => run.reader.start(began, Some(output), metrics),
            Err(problem) => {
                run.abandon();
                return Err(problem);
            }
        }
        Ok(run)
    }

    /// The lease of the devices that the command uses; `None` without leased devices.
    pub fn lease(&mut self) -> Option<&mut Lease<'g>> {
        self.lease.as_deref_mut()
    }

    /// The values that this program sends to the command over the shared-memory link; `None` without a link.
    pub fn control(&self) -> Option<&Control> {
        self.reader.control()
    }

    /// The command's progress so far.
    pub fn progress(&self) -> &ProgressCounter {
        self.reader.counter()
    }

    /// The format of progress that was recognised in the output; `None` as long as there is none, and if the command
    /// reports items over the shared-memory link.
    pub fn recognised(&self) -> Option<RecognisedFormat> {
        self.reader.recognised()
    }

    /// The signal that this program has received, if any.
    pub fn interrupted(&self) -> Option<i32> {
        self.signals.received()
    }

    /// The moment just before the start of the command.
    pub fn began(&self) -> Moment {
        self.began
    }

    /// Waits at most `at_most` for the command's exit; `None` if it still runs.
    fn wait(&mut self, at_most: Duration) -> Result<Option<WorkloadEnd>, WorkloadError> {
        if let Some(attached) = &self.attached {
            return Ok(attached.wait(at_most).then(end_of_observation));
        }
        match (&mut self.child, &mut self.lease) {
            (Some(child), _) => child.wait(at_most),
            (None, Some(lease)) => wait_guarded(lease.guard(), at_most),
            (None, None) => Ok(None),
        }
    }

    /// Passes a signal on to the command; a guard does so by itself.
    fn pass_signal(&self, signal: i32) {
        if let Some(child) = &self.child {
            child.pass_signal(signal);
        }
    }

    /// Ends the command and everything that it started.
    fn end(&mut self) -> Result<(), WorkloadError> {
        if self.attached.is_some() {
            return Ok(());
        }
        match &mut self.lease {
            Some(lease) => end_guarded(lease.guard()),
            None => {
                end_descendants();
                Ok(())
            }
        }
    }

    /// Ends the command after an error, because it must not outlive the run. If the guard has died, the end
    /// of the lease ends the command.
    fn abandon(&mut self) {
        let _ = self.end();
    }
}

/// The end of observing a process that this program has not started: its exit code is not known here.
fn end_of_observation() -> WorkloadEnd {
    WorkloadEnd {
        exit: CommandExit::Code(0),
        at: MonotonicClock.now(),
        has_descendants: false,
    }
}

/// Starts to read the metrics page, if there is one.
fn start_metrics(source: Option<&MetricsSource>) -> Result<Option<MetricsReader>, WorkloadError> {
    source.map(MetricsReader::start).transpose()
}
