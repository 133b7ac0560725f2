//! The pump of virtual time: runs of a plan on simulated GPUs, on every core.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sweetspot_device::{Actuator, VirtualClock};
use sweetspot_sim::{GpuProfile, Job, Order, SimulatedGpu, Variation, Workload, find_gpu};
use sweetspot_study::{Configuration, PhaseResult, Plan, PlannedRun, RunEnd, RunResult};

use crate::SessionError;

/// A workload on a simulated GPU.
pub struct Bench {
    pub gpu_name: String,
    pub gpu: GpuProfile,
    pub workload: Workload,
    pub items: Option<u64>,
}

impl Bench {
    /// The job of a configuration.
    pub fn job(&self, batch: u64, variation: Variation) -> Result<Job, SessionError> {
        let order = Order {
            batch: Some(batch),
            items: self.items,
        };
        let base = |name: &str| find_gpu(name).ok().map(|(_, profile)| profile);
        Job::new(
            &self.workload.profile,
            &self.gpu_name,
            &self.gpu,
            order,
            variation,
            base,
        )
        .map_err(|problem| SessionError::Job {
            workload: self.workload.name.clone(),
            problem,
        })
    }

    /// One run on a GPU fresh from its rest, so that it depends on nothing but itself.
    pub fn run(
        &self,
        configuration: &Configuration,
        variation: Variation,
    ) -> Result<RunEnd, SessionError> {
        let clock = Arc::new(VirtualClock::default());
        let mut gpu = SimulatedGpu::new(&self.gpu_name, 0, self.gpu.clone(), clock.clone());
        let job = self.job(configuration.batch, variation)?;
        if let Err(problem) = gpu.apply(&configuration.settings) {
            return Ok(RunEnd::Failed(problem.to_string()));
        }
        let outcome = match gpu.run(&job, &mut ()) {
            Ok(outcome) => outcome,
            Err(problem) => return Ok(RunEnd::Failed(problem.to_string())),
        };
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
        let helpers: Vec<_> = (1..threads.get().min(runs.len()))
            .map(|_| scope.spawn(work))
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
