//! Interruptions of tuning: stalled progress and changes of the job's phase.

use sweetspot_quantity::Seconds;

use super::super::load::LoadSearch;
use super::super::notice::TuneNotice;
use super::{Stage, Task, Tuner};

/// Progress counts as stalled after this time without a report, in seconds.
const STALL_TIME: f64 = 10.0;
/// A phase is tuned as a load of its own once it has lasted this long, in seconds.
const MIN_PHASE_TIME: f64 = 5.0;
/// [`STALL_TIME`] and [`MIN_PHASE_TIME`] are extended to at least this many times the usual time between progress
/// reports.
const MIN_REPORT_GAPS: f64 = 10.0;

/// The phase that the job is in, and the time at which it began.
#[derive(Clone, Debug, Default)]
pub(super) struct CurrentPhase {
    name: Option<String>,
    since: f64,
}

impl CurrentPhase {
    /// Stores the phase that the job reports, and the time if it is a new one.
    pub(super) fn update(&mut self, name: Option<String>, now: f64) {
        if name != self.name {
            *self = Self { name, since: now };
        }
    }
}

impl Tuner {
    /// Records a progress report, and resumes tuning if progress had stalled.
    pub(super) fn on_progress(&mut self, now: f64, at: f64, total: f64) {
        let before = self.monitor.last_report();
        self.monitor.record_progress(at, total);
        let is_new = self.monitor.last_report() != before;
        if is_new && let Stage::Stalled(interrupted) = &self.stage {
            let interrupted = (**interrupted).clone();
            self.load.deadline += now - before.unwrap_or(now);
            self.notify(now, TuneNotice::ProgressResumed);
            self.enter(now, interrupted);
            self.stage.restart_window(now + self.config.settle.get());
        }
    }

    /// Pauses tuning if progress has stalled; returns whether it has just stalled.
    pub(super) fn detect_stall(&mut self, now: f64) -> bool {
        let is_measuring = matches!(self.stage, Stage::Measuring { .. } | Stage::Holding(_));
        let last = self.monitor.last_report();
        let (true, true, Some(last)) = (self.needs_progress, is_measuring, last) else {
            return false;
        };
        if now - last < STALL_TIME.max(MIN_REPORT_GAPS * self.monitor.report_spacing()) {
            return false;
        }
        self.notify(now, TuneNotice::ProgressStalled(Seconds::new(now - last)));
        // The job counts as working up to its last progress report.
        self.account_until(last);
        let interrupted = std::mem::replace(&mut self.stage, Stage::New);
        self.stage = Stage::Stalled(Box::new(interrupted));
        true
    }

    /// Switches to the load of a new phase that has lasted long enough; returns whether it did.
    pub(super) fn detect_phase_change(&mut self, now: f64) -> bool {
        if self.phase.name == self.load.phase || matches!(self.stage, Stage::GaveUp { .. }) {
            return false;
        }
        let since = self.phase.since;
        let reports = MIN_REPORT_GAPS * self.monitor.report_spacing();
        if now - since < MIN_PHASE_TIME.max(reports) {
            return false;
        }
        let phase = self.phase.name.clone();
        if self.load.reference.is_none() {
            // Nothing was measured yet, so the present load is assigned to the new phase.
            self.load.phase = phase;
            return false;
        }
        self.notify(now, TuneNotice::PhaseChanged(phase.clone()));
        let known = self.other_loads.iter().position(|load| load.phase == phase);
        let new = match known {
            Some(index) => self.other_loads.remove(index),
            None => LoadSearch::new(&self.config, phase, None, false),
        };
        let before = self.switch_load(now, since, new);
        self.other_loads.push(before);
        match (self.load.choice, self.load.reference.is_some()) {
            (Some(choice), _) => self.set(now, choice, Task::Hold),
            (None, true) => self.try_next(now),
            (None, false) => self.set(now, self.reference(), Task::Reference),
        }
        true
    }
}
