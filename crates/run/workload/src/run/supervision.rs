//! Waits for a command's exit: limits, signals, and the handler.

use std::time::{Duration, Instant};

use sweetspot_device::{Clock, MonotonicClock};
use sweetspot_guard::{CommandExit, WorkloadEnd};

use super::{OnSignal, RunHandler, RunInProgress, RunLimits, end_of_observation};

/// The state of the loop that waits for the command's exit.
pub(super) struct Supervision {
    limits: RunLimits,
    began: Instant,
    pub interrupted: Option<i32>,
    /// The number of signals that were passed on.
    passed_on: usize,
    /// When the command will be ended because of a signal; `None` if no signal has arrived or it may take any
    /// time.
    end_at: Option<Instant>,
    pub timed_out: bool,
}

impl Supervision {
    /// Creates the state at the start of the command.
    pub fn new(limits: RunLimits) -> Self {
        Self {
            limits,
            began: Instant::now(),
            interrupted: None,
            passed_on: 0,
            end_at: None,
            timed_out: false,
        }
    }

    /// Waits for the exit, calls the handler and passes on signals; ends the command if a limit is exceeded.
    pub fn wait_for_exit<H: RunHandler>(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        handler: &mut H,
    ) -> Result<WorkloadEnd, H::Error> {
        loop {
            if let Some(end) = run.wait(self.limits.poll_interval)? {
                return Ok(end);
            }
            self.take_signals(run);
            let is_over = |limit: Duration| self.began.elapsed() > limit;
            if run.attached.is_some()
                && (self.interrupted.is_some() || self.limits.timeout.is_some_and(is_over))
            {
                return Ok(end_of_observation());
            }
            if self.end_at.is_some_and(|at| Instant::now() >= at) {
                tracing::warn!("the command did not exit after a signal: ending it");
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
                tracing::warn!(?limit, "the command exceeded its time limit: ending it");
                run.end()?;
            }
            let events = run.reader.poll();
            handler.poll(run, events)?;
        }
    }

    /// Passes new signals on to the command, and decides when the command is ended.
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
            _ if run.signals.is_repeated() => self.end_at = Some(now),
            OnSignal::EndAfter(grace) => {
                self.end_at.get_or_insert(now + grace);
            }
            OnSignal::EndAtSecond => {}
        }
    }
}
