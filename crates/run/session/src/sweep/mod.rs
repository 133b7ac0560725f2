//! `sweep`: runs a workload several times at every configuration of the chosen axes, and stores the results.
//!
//! Simulated GPUs in virtual time and a command in real time use the same plan and the same store.

mod cooling;
mod error;
mod real;
mod record;
mod runner;
mod slurm;
mod time_left;

pub use error::SweepError;
pub use slurm::{
    JobCounts, Placement, QueueSummary, SlurmError, SlurmOptions, SlurmRequest, UnplannedJobs,
    answer_probe, call_from_hook, has_submitted_jobs, reject_queued_jobs, test_without_gpus,
    was_started_on_slurm,
};
pub use time_left::TimeLeft;

use std::num::NonZeroUsize;

use sweetspot_device::KnobDescriptor;
use sweetspot_quantity::Seconds;
use sweetspot_study::{
    Definition, Outline, Plan, Point, PriorStudies, RunPlace, RunRecord, Status, Store, StoreError,
    Study, Task,
};
use sweetspot_virtual_time::{PreparedSweep, SimulatedSweep};
use sweetspot_workload::{GuardProgram, SignalSource};

use crate::SessionError;
use crate::observer::Observer;
use real::RealSweep;
use slurm::SlurmSweep;

/// A sweep that is ready to start.
pub struct Sweep {
    /// The study's plan, devices and workload.
    pub outline: Outline,
    /// The earlier studies that the search cannot learn from, with the reasons.
    pub prior: PriorStudies,
    /// What the user should know about the values of the axes.
    pub notes: Vec<String>,
    backend: Backend,
}

/// Where the runs are made: on simulated or on real GPUs, or by jobs of Slurm.
enum Backend {
    Simulated(SimulatedSweep),
    Real(Box<RealSweep>),
    Slurm(SlurmSweep),
}

/// Options that do not change the results of a sweep.
#[derive(Clone, Copy)]
pub struct SweepOptions<'a> {
    /// The number of threads that compute simulated runs.
    pub threads: NonZeroUsize,
    /// How the guard process is started.
    pub guard: GuardProgram<'a>,
    /// Whether the command's output is shown.
    pub show_output: bool,
}

impl Default for SweepOptions<'_> {
    fn default() -> Self {
        Self {
            threads: NonZeroUsize::MIN,
            guard: GuardProgram {
                command: &|| {
                    let mut guard = std::process::Command::new("sweetspot");
                    guard.arg("guard");
                    Ok(guard)
                },
                asks_root: false,
            },
            show_output: false,
        }
    }
}

/// An estimate of how long a sweep takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SweepTime {
    /// The virtual time that simulated GPUs need; computing it takes far less.
    Simulated(Seconds),
    /// The time on real GPUs in addition to the command's own run time, which is not known in advance.
    Overhead(Seconds),
    /// The jobs of a study on Slurm; when they start is up to Slurm.
    Jobs(JobCounts),
}

impl Sweep {
    /// Checks the definition, the GPUs and the workload; nothing is run or set yet.
    pub fn prepare(definition: &Definition) -> Result<Self, SessionError> {
        definition.check()?;
        let is_simulated = definition.simulate.is_some() || definition.node.is_some();
        match (&definition.command, is_simulated) {
            (Some(_), true) => Err(SweepError::CommandInVirtualTime.into()),
            (Some(_), false) => RealSweep::prepare(definition),
            (None, true) => {
                let PreparedSweep {
                    outline,
                    prior,
                    notes,
                    sweep,
                } = SimulatedSweep::prepare(definition)?;
                Ok(Self {
                    outline,
                    prior,
                    notes,
                    backend: Backend::Simulated(sweep),
                })
            }
            (None, false) => Err(SweepError::NothingToRun.into()),
        }
    }

    /// Prepares to continue a sweep that was started before, with the same plan.
    pub fn resume(outline: &Outline) -> Result<Self, SessionError> {
        if outline.merged {
            return Err(SweepError::Merged.into());
        }
        let now = Self::prepare(&outline.definition)?;
        let changed = |what: &'static str| Err(SweepError::Changed(what).into());
        // The GPUs of another node are accepted if they are of the same kind.
        let gpu_kinds = |outline: &Outline| -> Vec<(String, Vec<KnobDescriptor>)> {
            let devices = outline.subject.devices.iter();
            devices
                .map(|device| (device.name.clone(), device.knobs.clone()))
                .collect()
        };
        if gpu_kinds(&now.outline) != gpu_kinds(outline) {
            return changed("the GPUs differ from those of the study");
        }
        if now.outline.fingerprint != outline.fingerprint {
            return changed(match &outline.definition.command {
                Some(_) => "the calibrations have changed",
                None => "the profiles of GPU, node or workload have changed",
            });
        }
        // The stored plan contains what its search has learnt from earlier studies, even if they no longer exist.
        let without_earlier = |plan: &Plan| {
            let mut plan = plan.clone();
            if let Some(search) = &mut plan.search {
                search.prior.clear();
            }
            plan
        };
        if without_earlier(&now.outline.plan) != without_earlier(&outline.plan) {
            return changed("this version of the program plans other runs");
        }
        Ok(Self {
            outline: outline.clone(),
            prior: PriorStudies::default(),
            notes: Vec::new(),
            backend: now.backend,
        })
    }

    /// Whether this computer's GPUs are other GPUs than the study's, but of the same kind.
    pub fn uses_other_gpus(&self) -> bool {
        let Backend::Real(real) = &self.backend else {
            return false;
        };
        let devices = self.outline.subject.devices.iter();
        !devices.map(|device| &device.id).eq(real.ids())
    }

    /// A short name for the study's folder.
    pub fn name(&self) -> String {
        let subject = &self.outline.subject;
        let workload = match &subject.workload.command {
            Some(command) => command_name(command),
            None => subject
                .workload
                .name
                .split('@')
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        let definition = &self.outline.definition;
        let devices = definition.simulate.as_ref().or(definition.node.as_ref());
        let devices = devices.unwrap_or(&subject.device_name);
        let name = format!("{}-{}", file_stem(&workload), file_stem(devices));
        let letters = name.chars().map(|letter| match letter {
            letter if letter.is_ascii_alphanumeric() || "._".contains(letter) => letter,
            _ => '-',
        });
        letters
            .collect::<String>()
            .trim_matches(['-', '.'])
            .to_owned()
    }

    /// Estimates how long the whole sweep takes.
    pub fn estimate(&self) -> SweepTime {
        match &self.backend {
            Backend::Simulated(sweep) => SweepTime::Simulated(sweep.estimate(&self.outline)),
            Backend::Real(real) => real.estimate(&self.outline),
            Backend::Slurm(slurm) => {
                SweepTime::Jobs(slurm.jobs(&self.outline, self.outline.plan.len()))
            }
        }
    }

    /// Makes all missing runs, and records them in the store if there is one.
    pub fn run(
        &self,
        mut store: Option<&mut Store>,
        options: &SweepOptions<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Study, SessionError> {
        let energy_of = self.outline.subject.energy_of;
        let mut points = match &store {
            Some(store) => store.points(&self.outline, energy_of)?,
            None => self.outline.empty_points(energy_of),
        };
        match &self.backend {
            Backend::Simulated(sweep) => {
                self.run_simulated(sweep, &mut points, &mut store, options, observer)?;
            }
            Backend::Real(real) => {
                real.run(&self.outline, &mut points, &mut store, options, observer)?;
            }
            Backend::Slurm(slurm) => slurm.run(&self.outline, &mut points, &mut store, observer)?,
        }
        Ok(self.outline.clone().into_study(points)?)
    }

    /// Makes the missing runs on simulated GPUs, and stores them if there is a store.
    fn run_simulated(
        &self,
        sweep: &SimulatedSweep,
        points: &mut [Point],
        store: &mut Option<&mut Store>,
        options: &SweepOptions<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        // Without a store there is nothing to save, so a signal may end the process at once.
        let signals = store.as_ref().map(|_| SignalSource::listen()).transpose()?;
        let received = || signals.as_ref().and_then(SignalSource::received);
        let counts = sweep.run(
            &self.outline,
            points,
            store,
            options.threads,
            &|| received().is_some(),
            &mut |progress, run| observer.run_done(progress, run),
        )?;
        match received().filter(|_| counts.interrupted) {
            Some(signal) => Err(SweepError::Interrupted {
                signal,
                done: counts.done,
                planned: counts.planned,
                restored: true,
            }
            .into()),
            None => Ok(()),
        }
    }

    /// Makes some runs and writes their samples into the study's folder; `on_record` stores each record as soon as it
    /// is known.
    pub fn run_tasks(
        &self,
        tasks: &[Task],
        folder: &std::path::Path,
        options: &SweepOptions<'_>,
        observer: &mut dyn Observer,
        on_record: &mut dyn FnMut(RunRecord) -> Result<(), StoreError>,
    ) -> Result<(), SessionError> {
        let (outline, place) = (&self.outline, self.place());
        let mut on_record = |mut record: RunRecord| {
            record.place.clone_from(&place);
            on_record(record)
        };
        match &self.backend {
            Backend::Simulated(sweep) => {
                for task in tasks {
                    on_record(sweep.run_task(outline, *task, Some(folder))?)?;
                }
                Ok(())
            }
            Backend::Real(real) => {
                real.run_tasks(outline, tasks, folder, options, observer, &mut on_record)
            }
            Backend::Slurm(_) => Err(SweepError::NothingToRun.into()),
        }
    }

    /// Where runs are made now; `None` if no scheduler has chosen the place.
    fn place(&self) -> Option<RunPlace> {
        let gpus = match &self.backend {
            Backend::Real(real) => real.ids().cloned().collect(),
            _ => self
                .outline
                .subject
                .devices
                .iter()
                .map(|device| device.id.clone())
                .collect(),
        };
        slurm::current_job().map(|(node, job)| RunPlace {
            node,
            job: Some(job),
            gpus,
        })
    }
}

/// The name of the command for the study: that of the script if an interpreter runs one, otherwise of the
/// program.
fn command_name(command: &[String]) -> String {
    let script = command.iter().skip(1).find(|word| {
        let extension = std::path::Path::new(word).extension();
        extension.is_some_and(|extension| extension == "py" || extension == "sh")
    });
    script.or(command.first()).cloned().unwrap_or_default()
}

/// The last part of a path, without the extension of a script or a profile.
fn file_stem(text: &str) -> String {
    let path = std::path::Path::new(text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml" | "py" | "sh") => path.file_stem(),
        _ => path.file_name(),
    }
    .map_or_else(
        || text.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Whether all runs of a study succeeded.
pub fn all_runs_succeeded(study: &Study) -> bool {
    // A search does not run every configuration.
    let is_skipped = |point: &&Point| study.plan.search.is_some() && point.runs.is_empty();
    let all = study.points.iter().chain([&study.reference]);
    let mut tried = all.filter(|point| !is_skipped(point));
    tried.all(|point| point.status() == Status::Ok)
}
