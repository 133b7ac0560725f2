//! Makes the runs of a sweep one after the other; the last readings of a run arrive while the devices settle for the
//! next.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use sweetspot_device::{AppliedKnob, DeviceId, Shortfall};
use sweetspot_guard::{GuardError, Refusal};
use sweetspot_measure::{RunWindow, Sampler};
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_study::{
    Configuration, Outline, Point, ReducedCap, ReferenceFailed, RunEnding, RunRecord, RunResult,
    Store, SweepProgress, Task, samples_file, write_task,
};
use sweetspot_workload::{
    Lease, RecognisedFormat, RunLimits, SignalSource, WorkloadError, end_descendants,
};

use super::real::RealSweep;
use super::record::{FinishedRun, UnfinishedRun, find_failure};
use super::{SweepError, SweepOptions, TimeLeft};
use crate::SessionError;
use crate::measure::{MeasureRequest, MeasuredRun, RunContext};
use crate::observer::Observer;

/// A sweep in progress: the leased GPUs, the sampler and the run that is still being finished.
pub struct SweepRunner<'a, 'b> {
    pub real: &'a RealSweep,
    pub outline: &'a Outline,
    pub points: &'a mut [Point],
    pub store: &'a mut Option<&'b mut Store>,
    /// The study's folder; `None` if the study is not stored.
    pub folder: Option<PathBuf>,
    pub observer: &'a mut dyn Observer,
    pub options: &'a SweepOptions<'a>,
    pub lease: Option<Lease<'a>>,
    pub signals: SignalSource,
    /// Reads all devices for as long as the sweep lasts.
    pub sampler: Arc<Sampler>,
    /// The time of the first run from the start of its command to its exit; `None` before it has ended.
    pub first_run_time: Option<Seconds>,
    /// The previous run and the thread that waits for its last readings.
    pub finishing: Option<(Task, JoinHandle<Result<FinishedRun, SessionError>>)>,
    /// The format of progress that the user was told about.
    pub recognised: Option<RecognisedFormat>,
    /// Whether the user knows that the ranks mark different phases.
    pub warned_of_phases: bool,
}

impl SweepRunner<'_, '_> {
    /// Does the work, and then restores all devices, even if the work failed.
    pub fn run_and_restore<T>(
        mut self,
        work: impl FnOnce(&mut Self) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let done = work(&mut self);
        self.end(done)
    }

    /// Makes all runs that are not stored yet.
    pub fn run_all(&mut self) -> Result<(), SessionError> {
        let mut has_estimate = false;
        loop {
            // An adaptive plan needs the result of the previous run to decide about the next.
            if self.outline.plan.is_adaptive() || !has_estimate {
                self.store_previous_run()?;
            }
            self.check_reference()?;
            has_estimate = has_estimate || self.report_time_left()?;
            let energy_of = self.outline.subject.energy_of;
            let pending = self.outline.plan.pending(self.points, energy_of);
            let Some(task) = pending.first().copied() else {
                if self.finishing.is_none() {
                    return Ok(());
                }
                // The result of the last run may call for another one.
                self.store_previous_run()?;
                continue;
            };
            self.run_and_finish_later(task)?;
        }
    }

    /// Returns an error if the reference failed: without it nothing can be compared, and the command most likely fails
    /// at the other settings too.
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

    /// Reports how long the rest of the sweep takes, and returns whether that is known yet. Returns an error if the
    /// user does not want to go on.
    fn report_time_left(&mut self) -> Result<bool, SessionError> {
        let real = self.real;
        let reference = &self.points[self.outline.plan.reference];
        let Some(measured) = reference.results().next().map(|result| result.time) else {
            return Ok(false);
        };
        // A stored result has the time of the measurement window alone, which may be a small part of the run.
        let stored = (real.request.window == RunWindow::Run).then_some(measured);
        let Some(each) = self.first_run_time.or(stored) else {
            return Ok(false);
        };
        let left = TimeLeft::estimate(self.outline, self.points, each, real.settle, real.warmup);
        let signals = &self.signals;
        let goes_on = self
            .observer
            .time_left(&left, &|| signals.received().is_some());
        if let Some(signal) = signals.received() {
            return Err(WorkloadError::Interrupted(signal).into());
        }
        let done: usize = self.points.iter().map(|point| point.runs.len()).sum();
        match goes_on {
            true => Ok(true),
            false => Err(SweepError::Declined {
                done,
                planned: done + left.runs,
            }
            .into()),
        }
    }

    /// Passes the progress of the sweep to the observer.
    fn report_progress(&mut self, report: impl FnOnce(&mut dyn Observer, &SweepProgress<'_>)) {
        let energy_of = self.outline.subject.energy_of;
        let plan = &self.outline.plan;
        let expected = plan.expected_runs(self.points, energy_of);
        let done: usize = self.points.iter().map(|point| point.runs.len()).sum();
        let progress = SweepProgress {
            outline: self.outline,
            points: self.points,
            done,
            planned: done + expected.unwrap_or_else(|| plan.pending(self.points, energy_of).len()),
        };
        report(self.observer, &progress);
    }

    /// Makes one run, and starts a thread that waits for its last readings.
    fn run_and_finish_later(&mut self, task: Task) -> Result<(), SessionError> {
        let unfinished = self.run_task(task)?;
        // Until the run's energy is known, the plan uses a provisional record.
        self.points[task.configuration].add(unfinished.record.clone());
        let thread = std::thread::Builder::new()
            .spawn(move || unfinished.finish())
            .map_err(|problem| SessionError::System {
                what: "cannot start a thread to finish a run",
                problem,
            })?;
        self.finishing = Some((task, thread));
        Ok(())
    }

    /// Sets the devices, waits for them to settle and runs the command.
    pub fn run_task(&mut self, task: Task) -> Result<UnfinishedRun, SessionError> {
        self.report_progress(|observer, progress| observer.run_begins(progress, task));
        let configuration = &self.outline.plan.configurations[task.configuration];
        let reduced_caps = self.set_devices(configuration)?;
        let settled = Instant::now() + self.real.settle;
        let request = self.real.request_for(configuration, self.options)?;
        let caps = self.enforced_caps()?;
        self.store_previous_run()?;
        if task.repeat == 0 {
            for _ in 0..self.real.warmup {
                self.signals.wait_until(settled)?;
                let run = self.run_command(&request, configuration)?;
                self.end_left_processes(&run)?;
            }
        }
        self.wait_until_cool(configuration)?;
        self.signals.wait_until(settled)?;
        let started = SystemTime::now().duration_since(UNIX_EPOCH);
        let run = self.run_command(&request, configuration)?;
        if let Some(signal) = run.outcome.interrupted {
            return Err(WorkloadError::Interrupted(signal).into());
        }
        self.first_run_time.get_or_insert(run.span.length());
        self.end_left_processes(&run)?;
        let record = RunRecord {
            task,
            end: match find_failure(&run, &request) {
                Some(failure) => RunEnding::Failed(failure),
                None => RunEnding::Done(provisional_result(&run)),
            },
            started_unix_s: started.ok().map(|since| since.as_secs_f64()),
            reduced_caps,
            warnings: self.changed_caps(configuration)?,
            place: None,
        };
        let folder = self.folder.as_ref().filter(|_| self.real.samples);
        let measured = self.real.measured_gpus().chain(&self.real.host);
        Ok(UnfinishedRun {
            request,
            sampler: self.sampler.clone(),
            caps,
            run,
            record,
            devices: measured.map(|gpu| gpu.descriptor().clone()).collect(),
            job_gpus: configuration.gpus as usize,
            host_parts: self.real.host.len(),
            meters: self.real.meters.clone(),
            samples: folder.map(|folder| samples_file(folder, self.outline.plan.id(task))),
        })
    }

    /// Waits for the last readings of the previous run, and stores that run.
    fn store_previous_run(&mut self) -> Result<(), SessionError> {
        let Some((task, thread)) = self.finishing.take() else {
            return Ok(());
        };
        self.points[task.configuration].remove(task);
        let FinishedRun {
            record,
            limit,
            different_phases,
        } = match thread.join() {
            Ok(finished) => finished?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let id = self.outline.plan.id(task);
        if let Some(store) = self.store
            && let Err(problem) = store.record(&[(id, record.clone())])
        {
            // If the record could not be stored, it is written to a file of its own, which a later resume reads.
            let _ = write_task(self.outline, store.folder(), &record);
            return Err(problem.into());
        }
        self.points[task.configuration].add(record.clone());
        self.report_progress(|observer, progress| observer.run_done(progress, &record));
        if let Some(problem) = different_phases
            && !std::mem::replace(&mut self.warned_of_phases, true)
        {
            self.observer.note(&format!(
                "{problem}; until then the table shows the phases of single ranks side by side"
            ));
        }
        let is_reference = task.configuration == self.outline.plan.reference && task.repeat == 0;
        if let Some(limit) = limit.filter(|_| is_reference) {
            self.observer.note(&format!("at the reference, {limit}"));
        }
        Ok(())
    }

    /// Applies the configuration to the job's GPUs, and restores the other GPUs.
    fn set_devices(
        &mut self,
        configuration: &Configuration,
    ) -> Result<Vec<ReducedCap>, SessionError> {
        let mut reduced_caps = Vec::new();
        let Some(lease) = &mut self.lease else {
            return Ok(reduced_caps);
        };
        for (index, gpu) in self.real.gpus.iter().enumerate() {
            let id = &gpu.descriptor().id;
            if index as u64 >= configuration.gpus {
                lease.restore(id)?;
                continue;
            }
            let lower = lease.set(id, &configuration.settings(index))?;
            reduced_caps.extend(lower.map(|cap| reduced_cap(id, &cap)));
        }
        for package in &self.real.packages {
            let id = &package.descriptor().id;
            let lower = lease.set(id, &configuration.package_settings())?;
            reduced_caps.extend(lower.map(|cap| reduced_cap(id, &cap)));
        }
        Ok(reduced_caps)
    }

    /// Ends processes that the command has left running, because they would disturb the next run.
    fn end_left_processes(&mut self, run: &MeasuredRun) -> Result<(), SessionError> {
        match &mut self.lease {
            _ if !run.outcome.left_processes => {}
            // A process that cannot be ended is waiting for a device; the sweep continues nevertheless.
            Some(lease) => match lease.end_workload() {
                Err(WorkloadError::Guard(GuardError::Refused(Refusal::WorkloadRemains))) => {}
                ended => ended?,
            },
            None => end_descendants(),
        }
        Ok(())
    }

    /// Describes the caps that another program has changed during the run.
    fn changed_caps(&mut self, configuration: &Configuration) -> Result<Vec<String>, SessionError> {
        let mut changed = Vec::new();
        if let Some(lease) = &mut self.lease {
            let gpus = self.real.job_gpus(configuration).iter();
            for gpu in gpus.chain(&self.real.packages) {
                let lost = lease.lost_settings(&gpu.descriptor().id)?;
                changed.extend(lost.map(|lost| lost.to_string()));
            }
        }
        Ok(changed)
    }

    /// The power cap that each device now enforces; `None` for a device without a cap.
    fn enforced_caps(&self) -> Result<Vec<Option<Watts>>, SessionError> {
        self.real
            .measured_gpus()
            .map(|gpu| {
                let limits = gpu.reopen()?.power_limits();
                Ok(limits.ok().map(|limits| limits.enforced))
            })
            .collect()
    }

    /// Runs the command once at the present settings.
    fn run_command(
        &mut self,
        request: &MeasureRequest,
        configuration: &Configuration,
    ) -> Result<MeasuredRun, SessionError> {
        let mut context = RunContext {
            request,
            sampler: &self.sampler,
            signals: &self.signals,
            limits: RunLimits {
                timeout: request.timeout,
                ..RunLimits::default()
            },
            observer: self.observer,
            used_gpus: configuration.gpus as usize,
            devices: Vec::new(),
            recognised: self.recognised.take(),
        };
        let run = context.run(self.lease.as_mut());
        self.recognised = context.recognised;
        run
    }

    /// Restores all devices, even after an error, and stores the last finished run.
    fn end<T>(mut self, done: Result<T, SessionError>) -> Result<T, SessionError> {
        // The devices are restored first.
        let observer = &mut *self.observer;
        let restored = self
            .lease
            .take()
            .map(|lease| lease.release(&mut |text: &str| observer.note(text)));
        let stored = self.store_previous_run();
        let (mut finished, mut planned) = (0, 0);
        self.report_progress(|_, progress| (finished, planned) = (progress.done, progress.planned));
        // A signal may cause other errors, which are not worth reporting.
        if let Some(signal) = self.signals.received() {
            return Err(SweepError::Interrupted {
                signal,
                done: finished,
                planned,
                restored: !matches!(restored, Some(Ok(false) | Err(_))),
            }
            .into());
        }
        let done = match &restored {
            Some(restored) => done.map_err(|problem| problem.after_release(restored))?,
            None => done?,
        };
        stored?;
        match restored.transpose()? {
            Some(false) => Err(SweepError::NotRestored.into()),
            _ => Ok(done),
        }
    }
}

/// A cap that the device replaces by a lower one.
fn reduced_cap(device: &DeviceId, cap: &AppliedKnob<Watts>) -> ReducedCap {
    ReducedCap {
        device: device.clone(),
        requested: cap.requested,
        enforced: cap.enforced,
        reason: cap.shortfall.clone().unwrap_or(Shortfall::BoardLimit),
    }
}

/// The result of a run whose energy is not known yet: time, items and values.
fn provisional_result(run: &MeasuredRun) -> RunResult {
    RunResult {
        time: run.span.length(),
        energies: Default::default(),
        devices: Vec::new(),
        items: None,
        phases: Vec::new(),
        values: Default::default(),
    }
}
