//! The pump of virtual time: runs of a plan on simulated GPUs, on every core.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sweetspot_device::{Actuator, VirtualClock};
use sweetspot_sim::{
    GpuProfile, Job, JobError, Mode, Order, SimulatedGpu, Variation, Work, Workload, find_gpu,
    find_workload,
};
use sweetspot_study::{Configuration, PhaseResult, Plan, PlannedRun, RunEnd, RunResult};

use crate::SessionError;

/// A workload on a simulated GPU.
pub struct Bench {
    pub gpu_name: String,
    pub gpu: GpuProfile,
    pub workload: Workload,
    pub work: Work,
    pub items: Option<u64>,
}

impl Bench {
    /// Puts the workload on the GPU, both found by name or path.
    pub fn new(
        gpu: &str,
        network: &str,
        mode: Option<Mode>,
        items: Option<u64>,
    ) -> Result<Self, SessionError> {
        let (gpu_name, gpu) = find_gpu(gpu)?;
        let workload = find_workload(network, gpu.study.as_deref())?;
        check_mode(&workload, mode)?;
        let work = work_on(&workload, &gpu_name, &gpu)?;
        Ok(Self {
            gpu_name,
            gpu,
            workload,
            work,
            items,
        })
    }

    /// The job of a batch size.
    pub fn job(&self, batch: u64, variation: Variation) -> Result<Job, SessionError> {
        let order = Order {
            batch: Some(batch),
            items: self.items,
        };
        Job::new(
            &self.workload.profile,
            &self.work,
            &self.gpu,
            order,
            variation,
        )
        .map_err(|problem| of_job(&self.workload, problem))
    }

    /// One run on a GPU fresh from its rest, so that it depends on nothing but itself.
    pub fn run(
        &self,
        configuration: &Configuration,
        variation: Variation,
    ) -> Result<RunEnd, SessionError> {
        let clock = Arc::new(VirtualClock::default());
        let mut gpu = SimulatedGpu::new(0, self.gpu.clone(), clock.clone());
        let job = self.job(configuration.batch, variation)?;
        if let Err(problem) = gpu.apply(&configuration.settings) {
            return Ok(RunEnd::Failed(problem.to_string()));
        }
        let outcome = match gpu.run(&job, &mut ()) {
            Ok(outcome) => outcome,
            Err(problem) => return Ok(RunEnd::Failed(problem.to_string())),
        };
        if !(outcome.time.is_finite() && outcome.energy.is_finite()) {
            let reason = "the simulation came to no finite result";
            return Ok(RunEnd::Failed(reason.to_owned()));
        }
        clock.advance(outcome.time);
        Ok(RunEnd::Done(RunResult {
            time: outcome.time,
            energy: outcome.energy,
            items: outcome.items,
            phases: outcome
                .phases
                .into_iter()
                .map(|phase| PhaseResult {
                    name: phase.name,
                    time: phase.time,
                    energy: phase.energy,
                })
                .collect(),
        }))
    }
}

/// The workload must be of the mode that was asked for.
pub fn check_mode(workload: &Workload, asked: Option<Mode>) -> Result<(), SessionError> {
    match asked {
        Some(asked) if asked != workload.profile.mode => Err(SessionError::Mode {
            has: workload.profile.mode,
            workload: workload.name.clone(),
            asked,
        }),
        _ => Ok(()),
    }
}

/// The workload's work on a GPU.
pub fn work_on(workload: &Workload, name: &str, gpu: &GpuProfile) -> Result<Work, SessionError> {
    let find = |name: &str| find_gpu(name).ok();
    Work::on(&workload.profile, name, gpu, find).map_err(|problem| of_job(workload, problem))
}

pub fn of_job(workload: &Workload, problem: JobError) -> SessionError {
    SessionError::Job {
        workload: workload.name.clone(),
        problem,
    }
}

/// Every run of a plan, in the plan's order, whatever the number of threads.
pub fn run_plan(
    bench: &Bench,
    plan: &Plan,
    threads: NonZeroUsize,
) -> Result<Vec<(PlannedRun, RunEnd)>, SessionError> {
    let runs = plan.runs();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(planned) = runs.get(index) else {
                return done;
            };
            let variation = Variation::draw(bench.gpu.noise, planned.seed);
            let configuration = &plan.configurations[planned.configuration];
            done.push((index, bench.run(configuration, variation)));
        }
    };
    let mut done: Vec<_> = std::thread::scope(|scope| {
        // Where no more threads can be had, those there are do the work.
        let helpers: Vec<_> = (1..threads.get().min(runs.len()))
            .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut done = work();
        for helper in helpers {
            match helper.join() {
                Ok(theirs) => done.extend(theirs),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter()
        .map(|(index, end)| Ok((runs[index], end?)))
        .collect()
}
