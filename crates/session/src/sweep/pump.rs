//! Runs of a command, one after the other; the last readings of one come while the next settles.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sweetspot_device::{
    Amount, Clock, Device, MonotonicClock, PowerLimits, SensorKind, Settings, Shortfall,
};
use sweetspot_guard::end_all;
use sweetspot_link::Reader;
use sweetspot_measure::Sampler;
use sweetspot_quantity::Watts;
use sweetspot_study::{
    Configuration, Enforced, Outline, Point, RunEnd, RunRecord, RunResult, Store, Task,
    samples_file, write_task,
};

use super::real::Real;
use super::record::{Finisher, failure_of};
use super::{Conduct, Follow, Progress};
use crate::SessionError;
use crate::lease::{Lease, noted};
use crate::measure::{
    Attention, ChildRun, MeasureRequest, OwnChildren, Starter, Surroundings, rest,
};

/// How long a GPU may take to get cool.
const COOL_WITHIN: Duration = Duration::from_secs(15 * 60);

/// One sweep under way.
pub struct Pump<'a, 'b> {
    pub real: &'a Real,
    pub outline: &'a Outline,
    pub points: &'a mut [Point],
    pub store: &'a mut Option<&'b mut Store>,
    /// Of the study.
    pub folder: Option<PathBuf>,
    pub follow: &'a mut dyn Follow,
    pub conduct: &'a Conduct<'a>,
    pub lease: Option<Lease<'a>>,
    pub interrupted: Arc<AtomicUsize>,
    /// Reads all devices for as long as the sweep lasts.
    pub sampler: Arc<Sampler>,
    /// What was set last on each GPU that may be used.
    pub set: Vec<Settings>,
    /// The run before, whose last readings are still awaited.
    pub finishing: Option<(Task, JoinHandle<Result<RunRecord, SessionError>>)>,
}

impl Pump<'_, '_> {
    fn signal(&self) -> Option<i32> {
        noted(&self.interrupted)
    }

    /// Does the work, and then puts everything back.
    pub fn through<T>(
        mut self,
        work: impl FnOnce(&mut Self) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let done = work(&mut self);
        self.end(done)
    }

    pub fn all(&mut self) -> Result<(), SessionError> {
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
            self.one(task)?;
        }
    }

    /// Tells how far the sweep is.
    fn tell(&mut self, what: impl FnOnce(&mut dyn Follow, &Progress<'_>)) {
        let of = self.outline.subject.energy_of;
        let done = self.points.iter().map(|point| point.runs.len()).sum();
        let progress = Progress {
            outline: self.outline,
            points: self.points,
            done,
            planned: done + self.outline.plan.pending(self.points, of).len(),
        };
        what(self.follow, &progress);
    }

    /// One run, whose last readings come while the next one settles.
    fn one(&mut self, task: Task) -> Result<(), SessionError> {
        let finisher = self.make(task)?;
        // Until its energy is known, what is known of it decides what comes next.
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

    /// The setting, the wait, the command.
    pub fn make(&mut self, task: Task) -> Result<Finisher, SessionError> {
        self.tell(|follow, progress| follow.begins(progress, task));
        let configuration = &self.outline.plan.configurations[task.configuration];
        let enforced = self.set(configuration)?;
        let settled = Instant::now() + self.real.settle;
        let request = self.real.request(configuration, self.conduct)?;
        let caps = self.caps()?;
        self.finish()?;
        if task.repeat == 0 {
            for _ in 0..self.real.warmup {
                self.rest(settled)?;
                let run = self.command(&request)?;
                self.end_what_is_left(&run)?;
            }
        }
        self.cool(configuration)?;
        self.rest(settled)?;
        let started = SystemTime::now().duration_since(UNIX_EPOCH);
        let run = self.command(&request)?;
        if let Some(signal) = run.interrupted {
            return Err(SessionError::Interrupted(signal));
        }
        self.end_what_is_left(&run)?;
        let record = RunRecord {
            task,
            end: match failure_of(&run, &request) {
                Some(failure) => RunEnd::Failed(failure),
                None => RunEnd::Done(provisional(&run)),
            },
            started_unix_s: started.ok().map(|since| since.as_secs_f64()),
            enforced,
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
        self.tell(|follow, progress| follow.done(progress, &record));
        Ok(())
    }

    /// Brings the job's GPUs to the configuration, and the others to where they were.
    fn set(&mut self, configuration: &Configuration) -> Result<Vec<Enforced>, SessionError> {
        let mut enforced = Vec::new();
        let Some(lease) = &mut self.lease else {
            return Ok(enforced);
        };
        for (index, gpu) in self.real.gpus.iter().enumerate() {
            let id = &gpu.descriptor().id;
            if index as u64 >= configuration.gpus {
                lease.put_back(id)?;
                self.set[index] = Settings::default();
                continue;
            }
            let mut settings = configuration.settings(index);
            // A configuration is the whole state: what the last one set and this one does not is freed.
            let before = std::mem::replace(&mut self.set[index], settings);
            if before
                .knobs()
                .iter()
                .any(|knob| !settings.knobs().contains(knob))
            {
                lease.put_back(id)?;
            }
            // What is set already needs no right to set it.
            let cap = settings.power_cap;
            let is_set = |limits: &PowerLimits| Some(limits.requested) == cap;
            if gpu
                .reopen()?
                .power_limits()
                .is_ok_and(|limits| is_set(&limits))
            {
                settings.power_cap = None;
            }
            let applied = lease.apply(id, &settings)?.power_cap;
            if let Ok(limits) = gpu.reopen()?.power_limits()
                && is_set(&limits)
                && limits.enforced < limits.requested
            {
                enforced.push(Enforced {
                    device: id.clone(),
                    requested: limits.requested,
                    enforced: limits.enforced,
                    reason: applied
                        .and_then(|cap| cap.shortfall)
                        .unwrap_or(Shortfall::BoardLimit),
                });
            }
        }
        Ok(enforced)
    }

    /// What a run leaves behind would disturb the next.
    fn end_what_is_left(&mut self, run: &ChildRun) -> Result<(), SessionError> {
        match &mut self.lease {
            _ if !run.left_processes => {}
            Some(lease) => {
                lease.guard().end_workload()?;
            }
            None => end_all(Duration::from_millis(300)),
        }
        Ok(())
    }

    /// Whether somebody else has changed a cap meanwhile, in words.
    fn changed_caps(&self, configuration: &Configuration) -> Result<Vec<String>, SessionError> {
        let mut changed = Vec::new();
        for (index, gpu) in self.real.job(configuration).iter().enumerate() {
            let Some(cap) = configuration.settings(index).power_cap else {
                continue;
            };
            if let Ok(limits) = gpu.reopen()?.power_limits()
                && limits.requested != cap
            {
                changed.push(format!(
                    "{}: the cap was {} at the end of the run, and {cap} was set: somebody else changed it",
                    gpu.descriptor().id,
                    limits.requested
                ));
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

    fn command(&mut self, request: &MeasureRequest) -> Result<ChildRun, SessionError> {
        let mut link = Reader::create()?;
        let clock: &dyn Clock = &MonotonicClock;
        let mut watch = ();
        let sampler = self.sampler.clone();
        let mut around = Surroundings {
            request,
            sampler: &sampler,
            clock,
            attention: Attention::Noted(self.interrupted.clone()),
            watch: &mut watch,
        };
        let starter: &mut dyn Starter = match &mut self.lease {
            Some(lease) => lease.guard(),
            None => &mut OwnChildren,
        };
        around.run(starter, &mut link)
    }

    /// Lets time pass, unless a signal comes.
    fn rest(&self, until: Instant) -> Result<(), SessionError> {
        rest(until, || self.signal())
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
                        return Err(SessionError::Setting {
                            device: gpu.descriptor().name.clone(),
                            problem: "its temperature cannot be read: leave --cool-to away"
                                .to_owned(),
                        });
                    }
                };
                if temperature <= wanted {
                    break;
                }
                if begun.elapsed() > COOL_WITHIN {
                    return Err(SessionError::TooHot {
                        device: gpu.descriptor().name.clone(),
                        temperature,
                        wanted,
                        minutes: COOL_WITHIN.as_secs() / 60,
                    });
                }
                self.rest(Instant::now() + Duration::from_millis(500))?;
            }
        }
        Ok(())
    }

    /// Puts everything back, whatever happened; what was run to its end is kept.
    fn end<T>(mut self, done: Result<T, SessionError>) -> Result<T, SessionError> {
        // The devices come first.
        let follow = &mut *self.follow;
        let restored = self
            .lease
            .take()
            .map(|lease| lease.release(&mut |note: &str| follow.tell(note)));
        let kept = self.finish();
        let (mut finished, mut planned) = (0, 0);
        self.tell(|_, progress| (finished, planned) = (progress.done, progress.planned));
        // Whatever a signal made of the work, the signal ended it.
        if let Some(signal) = self.signal() {
            return Err(SessionError::Stopped {
                signal,
                done: finished,
                planned,
                restored: !matches!(restored, Some(Ok(false) | Err(_))),
            });
        }
        let done = done?;
        kept?;
        match restored.transpose()? {
            Some(false) => Err(SessionError::NotRestored),
            _ => Ok(done),
        }
    }
}

/// What is known of a run at its end.
fn provisional(run: &ChildRun) -> RunResult {
    RunResult {
        time: run.span.length(),
        energies: Default::default(),
        devices: Vec::new(),
        items: None,
        phases: Vec::new(),
        values: Default::default(),
    }
}
