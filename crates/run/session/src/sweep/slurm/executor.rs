//! The loop that submits runs, watches the queue and gathers results.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use sweetspot_study::{
    Failure, Outline, Point, ReferenceFailed, RunEnding, RunRecord, Status, Store, SweepProgress,
};
use sweetspot_workload::SignalSource;

use super::commands::{Scheduler, SlurmCommands};
use super::ledger::Ledger;
use super::pinned::choose_node;
use super::tracker::{LostRun, QueueSummary, Tracker};
use super::{MAX_OUTAGE, OUTAGE_POLL, Placement, SlurmError, SlurmSweep, wait_reason};
use crate::SessionError;
use crate::observer::{Observer, Status as ShownStatus};
use crate::sweep::SweepError;

/// The shortest and the longest time between two looks at the queue. The controller serves a whole site.
const POLL: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));

/// The missing runs that may be made now, in the order of the plan. An adaptive plan names one round at a time.
pub fn wanted(outline: &Outline, points: &[Point]) -> Vec<u64> {
    let (plan, of) = (&outline.plan, outline.subject.energy_of);
    let tasks = match plan.is_adaptive() {
        true => plan.next_round(points, of).0,
        false => plan.pending(points, of),
    };
    tasks.into_iter().map(|task| plan.id(task)).collect()
}

/// A study in progress on Slurm.
pub(super) struct Execution<'a> {
    pub(super) sweep: &'a SlurmSweep,
    pub(super) outline: &'a Outline,
    pub(super) points: &'a mut [Point],
    pub(super) store: &'a mut Store,
    pub(super) slurm: &'a mut dyn Scheduler,
    pub(super) ledger: Ledger,
    pub(super) tracker: Tracker,
    pub(super) stored: HashSet<u64>,
    pub(super) words: Vec<String>,
    /// The node on which all runs are made; `None` unless they are pinned.
    pub(super) pinned: Option<String>,
    /// The nodes over which runs are spread; empty if they are not.
    pub(super) nodes: Vec<String>,
    pub(super) folder: std::path::PathBuf,
    pub(super) begun: Instant,
    pub(super) told: String,
    /// Whether nothing was looked at yet.
    pub(super) is_first: bool,
    /// Whether something has changed since runs were last submitted.
    pub(super) is_due: bool,
}

/// What one look at the queue has led to.
enum Step {
    /// No run is missing.
    Done,
    /// Jobs are under way; `has_changed` says whether something has happened since the look before.
    Waiting { has_changed: bool },
}

impl SlurmSweep {
    /// Makes all runs that are not stored yet.
    pub fn run(
        &self,
        outline: &Outline,
        points: &mut [Point],
        store: &mut Option<&mut Store>,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let store = store.as_deref_mut().ok_or(SlurmError::NoStore)?;
        let signals = SignalSource::listen()?;
        let mut slurm = SlurmCommands::with_signals(&signals);
        self.run_with(&mut slurm, &signals, outline, points, store, observer)
    }

    /// Makes all runs that are not stored yet, on this scheduler.
    pub(super) fn run_with(
        &self,
        slurm: &mut dyn Scheduler,
        signals: &SignalSource,
        outline: &Outline,
        points: &mut [Point],
        store: &mut Store,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let folder =
            std::path::absolute(store.folder()).map_err(SlurmError::file(store.folder()))?;
        let ledger = Ledger::new(&folder, &outline.identity());
        let (arrays, words) = (ledger.arrays()?, self.options.sbatch_words()?);
        let pinned = match (self.options.placement(), &self.node) {
            (Placement::Pinned, None) => Some(choose_node(points, &arrays, &words, slurm)?),
            (_, node) => node.clone(),
        };
        ledger.write_executor(&self.options, pinned.as_deref())?;
        let mut tracker = Tracker::default();
        arrays.into_iter().for_each(|array| tracker.add(array));
        let runs = points.iter().flat_map(|point| &point.runs);
        let mut execution = Execution {
            sweep: self,
            outline,
            stored: runs.map(|run| outline.plan.id(run.task)).collect(),
            points,
            store,
            slurm,
            ledger,
            tracker,
            words,
            pinned,
            nodes: Vec::new(),
            folder,
            begun: Instant::now(),
            told: String::new(),
            is_first: true,
            is_due: true,
        };
        let done = execution.run(signals, observer);
        execution.end(done, signals, observer)
    }
}

impl Execution<'_> {
    /// Submits, watches and gathers until nothing is missing.
    fn run(
        &mut self,
        signals: &SignalSource,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let mut poll = POLL.0;
        let mut reachable_at = Instant::now();
        loop {
            match self.step(observer) {
                Ok(Step::Done) => return Ok(()),
                Ok(Step::Waiting { has_changed }) => {
                    reachable_at = Instant::now();
                    poll = match has_changed {
                        true => POLL.0,
                        false => (poll * 3 / 2).min(POLL.1),
                    };
                    signals.wait_until(Instant::now() + poll)?;
                }
                Err(SessionError::Slurm(problem))
                    if problem.is_outage()
                        && signals.received().is_none()
                        && reachable_at.elapsed() < MAX_OUTAGE =>
                {
                    observer.note(&format!("{problem}; trying again"));
                    signals.wait_until(Instant::now() + OUTAGE_POLL)?;
                }
                Err(problem) => return Err(problem),
            }
        }
    }

    /// Looks once at the queue and at the results, and submits what is missing.
    fn step(&mut self, observer: &mut dyn Observer) -> Result<Step, SessionError> {
        // The queue is read before the results: a job that has left the queue has written its result before.
        let queue = self.slurm.queue(&self.open_names())?;
        let gathered = self.gather(observer)?;
        self.check_reference()?;
        let stored = &self.stored;
        if std::mem::take(&mut self.is_first) {
            let cancelled = self.tracker.resume(&queue, |run| stored.contains(&run));
            if cancelled > 0 {
                observer.note(&format!(
                    "{cancelled} runs whose jobs were cancelled are submitted again"
                ));
            }
        }
        let is_stored = |run| stored.contains(&run);
        let summary = self.tracker.update(&queue, is_stored, self.begun.elapsed());
        self.settle_lost(&summary, observer)?;
        let has_changed = gathered > 0 || !summary.lost.is_empty();
        self.is_due |= has_changed;
        if self.submit_missing(observer)? && self.tracker.is_idle() {
            return Ok(Step::Done);
        }
        self.is_due = false;
        self.show(&summary, observer);
        Ok(Step::Waiting { has_changed })
    }

    /// The names of the arrays that may have jobs in the queue.
    fn open_names(&self) -> Vec<String> {
        self.tracker
            .open_arrays()
            .map(|array| array.name.clone())
            .collect()
    }

    /// Stores the results that jobs have left, and returns their number.
    fn gather(&mut self, observer: &mut dyn Observer) -> Result<usize, SessionError> {
        let runs = self.store.gather(self.outline)?;
        for run in &runs {
            self.take_in(run);
        }
        if let Some(last) = runs.last() {
            observer.run_done(&self.progress(), last);
        }
        Ok(runs.len())
    }

    /// Takes note of a run that is stored.
    fn take_in(&mut self, run: &RunRecord) {
        if self.stored.insert(self.outline.plan.id(run.task)) {
            self.points[run.task.configuration].add(run.clone());
        }
    }

    /// The progress of the study.
    fn progress(&self) -> SweepProgress<'_> {
        let plan = &self.outline.plan;
        let planned = match plan.is_adaptive() {
            true => {
                plan.next_round(self.points, self.outline.subject.energy_of)
                    .1
            }
            false => plan.len(),
        };
        SweepProgress {
            outline: self.outline,
            points: self.points,
            done: self.stored.len(),
            planned: planned.max(self.stored.len()),
        }
    }

    /// Returns an error if the reference failed: the command most likely fails at all other settings too.
    fn check_reference(&self) -> Result<(), SessionError> {
        let reference = &self.points[self.outline.plan.reference];
        match reference.failure() {
            Some(failure) => Err(ReferenceFailed {
                study: self.outline.subject.name(),
                reason: failure.reason.clone(),
            }
            .into()),
            None => Ok(()),
        }
    }

    /// Records runs that were lost too often as failed; the others are submitted again.
    fn settle_lost(
        &mut self,
        summary: &QueueSummary,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let mut failed = Vec::new();
        for lost in &summary.lost {
            let reason = self.describe(lost);
            let Some(task) = self.outline.plan.task(lost.id) else {
                continue;
            };
            if lost.attempts <= self.sweep.options.resubmissions() {
                tracing::info!(run = lost.id, reason, "run lost");
                observer.note(&format!("run {} is submitted again: {reason}", lost.id));
                continue;
            }
            if task.configuration == self.outline.plan.reference {
                return Err(SlurmError::ReferenceLost(reason).into());
            }
            let status = match lost.state.as_deref() {
                Some("TIMEOUT" | "DEADLINE") => Status::Timeout,
                _ => Status::Failed,
            };
            let end = RunEnding::Failed(Failure::new(status, reason));
            failed.push((lost.id, RunRecord::new(task, end)));
        }
        if !failed.is_empty() {
            self.store.record(&failed)?;
            for (_, run) in &failed {
                self.take_in(run);
            }
        }
        Ok(())
    }

    /// Says how a run was lost, with the last line that its job printed.
    fn describe(&self, lost: &LostRun) -> String {
        /// The most bytes of a job's output that are read.
        const MAX_OUTPUT: u64 = 1 << 20;
        let how = match lost.state.as_deref() {
            Some("TIMEOUT") => "its job reached its time limit".to_owned(),
            Some("NODE_FAIL") => "its node failed".to_owned(),
            Some("PREEMPTED") => "its job was preempted".to_owned(),
            Some("OUT_OF_MEMORY") => "its job had too little memory".to_owned(),
            Some(word) => format!("its job ended without a result ({word})"),
            None => "its job is gone without a result".to_owned(),
        };
        let node = match lost.node.as_str() {
            "" => String::new(),
            node => format!(" on {node}"),
        };
        let file = self.ledger.output_file(lost.job.0, &lost.job.1.to_string());
        let output = sweetspot_input::read_bytes(&file, MAX_OUTPUT).unwrap_or_default();
        let output = String::from_utf8_lossy(&output).into_owned();
        let last = output.lines().rfind(|line| !line.trim().is_empty());
        let last = last.map_or(String::new(), |line| format!(": {}", line.trim()));
        let attempts = match lost.attempts {
            0 => return format!("{how}{node} before the sweep was resumed{last}"),
            1 => "1 attempt".to_owned(),
            attempts => format!("{attempts} attempts"),
        };
        format!("{how}{node} after {attempts}{last}")
    }

    /// Shows the state of the queue, and withdraws arrays that wait for a node which is down.
    fn show(&mut self, summary: &QueueSummary, observer: &mut dyn Observer) {
        observer.status(&ShownStatus::Queue(summary));
        let is_stuck = summary.running == 0 && summary.pending > 0;
        let reason = summary.reasons.first().map_or("", String::as_str);
        if is_stuck && let Some(text) = wait_reason(reason, self.begun.elapsed(), &mut self.told) {
            observer.note(&format!(
                "{} jobs wait in the queue: {text}",
                summary.pending
            ));
        }
        if is_stuck && self.sweep.options.placement() == Placement::Spread {
            self.withdraw_stranded(observer);
        }
    }

    /// Cancels all jobs, and takes note of it: their runs are made when the sweep is resumed.
    fn cancel(&mut self) -> Result<(), SlurmError> {
        if self.tracker.open_arrays().any(|array| array.job.is_none()) {
            let queue = self.slurm.queue(&self.open_names())?;
            self.tracker.find_numbers(&queue);
        }
        let open = self.tracker.open_arrays();
        let (numbers, jobs): (Vec<u32>, Vec<Option<u64>>) =
            open.map(|array| (array.number, array.job)).unzip();
        let jobs: Vec<u64> = jobs.into_iter().flatten().collect();
        self.slurm.cancel(&jobs)?;
        for number in numbers {
            if let Some(array) = self.tracker.withdraw(number) {
                self.ledger.update(array)?;
            }
        }
        Ok(())
    }

    /// Ends the sweep: after an error or a signal, says what happens to the jobs, or cancels them.
    fn end(
        &mut self,
        done: Result<(), SessionError>,
        signals: &SignalSource,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let has_jobs = !self.tracker.is_idle();
        let signal = signals.received();
        let is_over = done.is_err()
            && signal.is_none()
            && !matches!(&done, Err(SessionError::Slurm(problem)) if problem.is_outage());
        if has_jobs && (is_over || signal.is_some() && self.sweep.cancels) {
            match self.cancel() {
                Ok(()) => observer.note("the jobs of the study are cancelled"),
                Err(problem) => observer.note(&format!("the jobs are not cancelled: {problem}")),
            }
            // What they left until now counts.
            let _ = self.gather(observer);
        } else if has_jobs && signal.is_some() {
            let names = self.open_names().join(",");
            observer.note(&format!(
                "the jobs of the study go on, and --resume finds them; `scancel --name={names}` cancels them"
            ));
        }
        if let Some(signal) = signal {
            let progress = self.progress();
            return Err(SweepError::Interrupted {
                signal,
                done: progress.done,
                planned: progress.planned,
                restored: true,
            }
            .into());
        }
        done?;
        match self.tracker.cancelled() {
            0 => Ok(()),
            runs => Err(SlurmError::Cancelled { runs }.into()),
        }
    }
}

#[cfg(test)]
mod tests;
