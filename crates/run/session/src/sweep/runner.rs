//! Runs of a command, one after the other; the last readings of one come while the next settles.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sweetspot_device::{Amount, SensorKind, Shortfall};
use sweetspot_guard::{GuardError, Refusal};
use sweetspot_measure::Sampler;
use sweetspot_quantity::Watts;
use sweetspot_study::{
    Configuration, Outline, Point, ReducedCap, RunEnding, RunRecord, RunResult, Store,
    SweepProgress, Task, samples_file, write_task,
};
use sweetspot_workload::{Lease, RunLimits, SignalSource, WorkloadError, end_descendants};

use super::real::Real;
use super::record::{Finisher, failure_of};
use super::{SweepError, SweepOptions};
use crate::SessionError;
use crate::host::DevicesError;
use crate::measure::{MeasureRequest, MeasuredRun, RunContext};
use crate::observer::Observer;

/// How long a GPU may take to get cool.
const COOL_WITHIN: Duration = Duration::from_secs(15 * 60);

/// A sweep that is under way.
pub struct SweepRunner<'a, 'b> {
    pub real: &'a Real,
    pub outline: &'a Outline,
    pub points: &'a mut [Point],
    pub store: &'a mut Option<&'b mut Store>,
    /// Of the study.
    pub folder: Option<PathBuf>,
    pub observer: &'a mut dyn Observer,
    pub options: &'a SweepOptions<'a>,
    pub lease: Option<Lease<'a>>,
    pub signals: SignalSource,
    /// Reads all devices for as long as the sweep lasts.
    pub sampler: Arc<Sampler>,
    /// The run before, whose last readings are still awaited.
    pub finishing: Option<(Task, JoinHandle<Result<RunRecord, SessionError>>)>,
}

impl SweepRunner<'_, '_> {
    /// Does the work, and then puts everything back.
    pub fn run_and_restore<T>(
        mut self,
        work: impl FnOnce(&mut Self) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let done = work(&mut self);
        self.end(done)
    }

    /// Makes every run that is not there yet.
    pub fn run_all(&mut self) -> Result<(), SessionError> {
        loop {
            // Whether another repeat is called for is known when the last one is.
            if self.outline.plan.until.is_some() || self.outline.plan.search.is_some() {
                self.finish()?;
            }
            let of = self.outline.subject.energy_of;
            let next = self.outline.plan.pending(self.points, of).first().copied();
            let Some(task) = next else {
                if self.finishing.is_none() {
                    return Ok(());
                }
                // Only now is it known whether more is called for.
                self.finish()?;
                continue;
            };
            self.run_and_finish_later(task)?;
        }
    }

    /// Shows how far the sweep is.
    fn show(&mut self, what: impl FnOnce(&mut dyn Observer, &SweepProgress<'_>)) {
        let of = self.outline.subject.energy_of;
        let done = self.points.iter().map(|point| point.runs.len()).sum();
        let progress = SweepProgress {
            outline: self.outline,
            points: self.points,
            done,
            planned: done + self.outline.plan.pending(self.points, of).len(),
        };
        what(self.observer, &progress);
    }

    /// Makes one run, whose last readings come while the next one settles.
    fn run_and_finish_later(&mut self, task: Task) -> Result<(), SessionError> {
        let finisher = self.run_task(task)?;
        // PrecisionTarget its energy is known, what is known of it decides what comes next.
        self.points[task.configuration].add(finisher.record.clone());
        let thread = std::thread::Builder::new()
            .spawn(move || finisher.finish())
            .map_err(|problem| SessionError::System {
                what: "no thread to finish a run with",
                problem,
            })?;
        self.finishing = Some((task, thread));
        Ok(())
    }

    /// Sets the devices, waits for them to settle and runs the command.
    pub fn run_task(&mut self, task: Task) -> Result<Finisher, SessionError> {
        self.show(|observer, progress| observer.run_begins(progress, task));
        let configuration = &self.outline.plan.configurations[task.configuration];
        let reduced_caps = self.set(configuration)?;
        let settled = Instant::now() + self.real.settle;
        let request = self.real.request(configuration, self.options)?;
        let caps = self.caps()?;
        self.finish()?;
        if task.repeat == 0 {
            for _ in 0..self.real.warmup {
                self.signals.wait_until(settled)?;
                let run = self.command(&request)?;
                self.end_what_is_left(&run)?;
            }
        }
        self.cool(configuration)?;
        self.signals.wait_until(settled)?;
        let started = SystemTime::now().duration_since(UNIX_EPOCH);
        let run = self.command(&request)?;
        if let Some(signal) = run.outcome.interrupted {
            return Err(WorkloadError::Interrupted(signal).into());
        }
        self.end_what_is_left(&run)?;
        let record = RunRecord {
            task,
            end: match failure_of(&run, &request) {
                Some(failure) => RunEnding::Failed(failure),
                None => RunEnding::Done(provisional(&run)),
            },
            started_unix_s: started.ok().map(|since| since.as_secs_f64()),
            reduced_caps,
            warnings: self.changed_caps(configuration)?,
        };
        let folder = self.folder.as_ref().filter(|_| self.real.samples);
        let measured = self.real.measured();
        Ok(Finisher {
            request,
            sampler: self.sampler.clone(),
            caps,
            run,
            record,
            devices: measured.map(|gpu| gpu.descriptor().clone()).collect(),
            in_job: configuration.gpus as usize,
            samples: folder.map(|folder| samples_file(folder, self.outline.plan.id(task))),
        })
    }

    /// Waits for the run before, and keeps it.
    fn finish(&mut self) -> Result<(), SessionError> {
        let Some((task, thread)) = self.finishing.take() else {
            return Ok(());
        };
        self.points[task.configuration].remove(task);
        let record = match thread.join() {
            Ok(record) => record?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let id = self.outline.plan.id(task);
        if let Some(store) = self.store
            && let Err(problem) = store.record(&[(id, record.clone())])
        {
            // A later resume takes it in from there, if there is room for a file at least.
            let _ = write_task(store.folder(), id, &record);
            return Err(problem.into());
        }
        self.points[task.configuration].add(record.clone());
        self.show(|observer, progress| observer.run_done(progress, &record));
        Ok(())
    }

    /// Brings the job's GPUs to the configuration, and the others to where they were.
    fn set(&mut self, configuration: &Configuration) -> Result<Vec<ReducedCap>, SessionError> {
        let mut reduced_caps = Vec::new();
        let Some(lease) = &mut self.lease else {
            return Ok(reduced_caps);
        };
        for (index, gpu) in self.real.gpus.iter().enumerate() {
            let id = &gpu.descriptor().id;
            if index as u64 >= configuration.gpus {
                lease.put_back(id)?;
                continue;
            }
            let lower = lease.set(id, &configuration.settings(index))?;
            reduced_caps.extend(lower.map(|cap| ReducedCap {
                device: id.clone(),
                requested: cap.requested,
                enforced: cap.enforced,
                reason: cap.shortfall.unwrap_or(Shortfall::BoardLimit),
            }));
        }
        Ok(reduced_caps)
    }

    /// Ends what a run leaves behind: it would disturb the next.
    fn end_what_is_left(&mut self, run: &MeasuredRun) -> Result<(), SessionError> {
        match &mut self.lease {
            _ if !run.outcome.left_processes => {}
            // One that cannot be ended waits for a device; the sweep goes on all the same.
            Some(lease) => match lease.end_workload() {
                Err(WorkloadError::Guard(GuardError::Refused(Refusal::WorkloadRemains))) => {}
                ended => ended?,
            },
            None => end_descendants(),
        }
        Ok(())
    }

    /// Says where somebody else has changed a cap meanwhile.
    fn changed_caps(&mut self, configuration: &Configuration) -> Result<Vec<String>, SessionError> {
        let mut changed = Vec::new();
        if let Some(lease) = &mut self.lease {
            for gpu in self.real.job(configuration) {
                let changed_cap = lease.changed_by_others(&gpu.descriptor().id)?;
                changed.extend(changed_cap.map(|cap| cap.to_string()));
            }
        }
        Ok(changed)
    }

    /// The most that each device may draw now.
    fn caps(&self) -> Result<Vec<Option<Watts>>, SessionError> {
        self.real
            .measured()
            .map(|gpu| {
                let limits = gpu.reopen()?.power_limits();
                Ok(limits.ok().map(|limits| limits.enforced))
            })
            .collect()
    }

    fn command(&mut self, request: &MeasureRequest) -> Result<MeasuredRun, SessionError> {
        let mut context = RunContext {
            request,
            sampler: &self.sampler,
            signals: &self.signals,
            limits: RunLimits {
                timeout: request.timeout,
                ..RunLimits::default()
            },
            observer: &mut (),
        };
        context.run(self.lease.as_mut())
    }

    /// Waits until every GPU of the job is cool enough.
    fn cool(&mut self, configuration: &Configuration) -> Result<(), SessionError> {
        let Some(wanted) = self.real.cool_to else {
            return Ok(());
        };
        let begun = Instant::now();
        for gpu in self.real.job(configuration) {
            let mut gpu = gpu.reopen()?;
            loop {
                let temperature = match gpu
                    .read(SensorKind::Temperature)
                    .map(|reading| reading.amount)
                {
                    Ok(Amount::Temperature(temperature)) => temperature,
                    _ => {
                        return Err(DevicesError::NotSupported {
                            device: gpu.descriptor().name.clone(),
                            problem: "its temperature cannot be read, so that the sweep cannot wait for it to cool".to_owned(),
                        }
                        .into());
                    }
                };
                if temperature <= wanted {
                    break;
                }
                if begun.elapsed() > COOL_WITHIN {
                    return Err(SweepError::TooHot {
                        device: gpu.descriptor().name.clone(),
                        temperature,
                        wanted,
                        minutes: COOL_WITHIN.as_secs() / 60,
                    }
                    .into());
                }
                let again = Instant::now() + Duration::from_millis(500);
                self.signals.wait_until(again)?;
            }
        }
        Ok(())
    }

    /// Puts everything back, whatever happened; what was run to its end is kept.
    fn end<T>(mut self, done: Result<T, SessionError>) -> Result<T, SessionError> {
        // The devices come first.
        let observer = &mut *self.observer;
        let restored = self
            .lease
            .take()
            .map(|lease| lease.release(&mut |text: &str| observer.note(text)));
        let kept = self.finish();
        let (mut finished, mut planned) = (0, 0);
        self.show(|_, progress| (finished, planned) = (progress.done, progress.planned));
        // Whatever a signal made of the work, the signal ended it.
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
        kept?;
        match restored.transpose()? {
            Some(false) => Err(SweepError::NotRestored.into()),
            _ => Ok(done),
        }
    }
}

/// What is known of a run at its end.
fn provisional(run: &MeasuredRun) -> RunResult {
    RunResult {
        time: run.span.length(),
        energies: Default::default(),
        devices: Vec::new(),
        items: None,
        phases: Vec::new(),
        values: Default::default(),
    }
}
