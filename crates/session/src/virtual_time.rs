//! The pump of virtual time: runs of a plan on simulated GPUs, on every core.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sweetspot_device::{Actuator, VirtualClock};
use sweetspot_quantity::{Joules, Watts};
use sweetspot_sim::{
    GpuProfile, Job, JobError, NodeProfile, Order, SimulatedGpu, Together, Variant, Variation,
    Work, Workload, find_gpu, find_node, find_workload, has_workloads,
};
use sweetspot_stats::Seed;
use sweetspot_study::{Configuration, EnergyOf, PhaseResult, Plan, PlannedRun, RunEnd, RunResult};

use crate::SessionError;
use crate::simulated_host::{gpu_names, usual_all_reduce};

/// A workload and the simulated GPUs it runs on, as the user names them.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// `NAME[:N],...`; the GPUs of the node where nothing is said.
    pub gpus: Option<String>,
    /// What stands around them.
    pub node: Option<String>,
    /// `NETWORK`, `NETWORK@STUDY` or a path.
    pub network: String,
    /// Which form of it.
    pub variant: Variant,
    /// Items in a run, all GPUs together.
    pub items: Option<u64>,
    /// Whose energy counts.
    pub energy_of: EnergyOf,
}

/// A GPU of a bench and the work of an item on it.
pub struct BenchGpu {
    pub name: String,
    pub profile: GpuProfile,
    pub work: Work,
}

/// A workload on simulated GPUs.
pub struct Bench {
    /// At least one.
    pub gpus: Vec<BenchGpu>,
    pub node: Option<NodeProfile>,
    pub workload: Workload,
    pub items: u64,
    pub energy_of: EnergyOf,
}

impl Bench {
    /// Puts the workload on the GPUs, all found by name or path.
    pub fn new(setup: &Setup) -> Result<Self, SessionError> {
        let node = setup.node.as_deref().map(find_node).transpose()?;
        let selector = match (&setup.gpus, &node) {
            (Some(gpus), _) => gpus,
            (None, Some((_, node))) => &node.gpus,
            (None, None) => return Err(SessionError::NoSimulatedGpu),
        };
        let mut gpus = Vec::new();
        for name in gpu_names(selector)? {
            gpus.push(find_gpu(&name)?);
        }
        // A node of a study brings its workloads along, as a GPU does.
        let of_gpu = gpus[0].1.study.as_deref();
        let of_node = node.as_ref().map(|(name, _)| name.as_str());
        let study = of_node.filter(|study| has_workloads(study)).or(of_gpu);
        let workload = find_workload(&setup.network, study, &setup.variant)?;
        if setup.energy_of == EnergyOf::Node && node.is_none() {
            return Err(SessionError::NodeEnergy);
        }
        let mut bench = Self::of(gpus, node.map(|(_, node)| node), workload, setup.energy_of)?;
        bench.items = setup.items.unwrap_or(bench.items);
        Ok(bench)
    }

    /// Puts a workload on GPUs, at least one, to do what its study did.
    pub fn of(
        gpus: Vec<(String, GpuProfile)>,
        node: Option<NodeProfile>,
        workload: Workload,
        energy_of: EnergyOf,
    ) -> Result<Self, SessionError> {
        let gpus = gpus
            .into_iter()
            .map(|(name, profile)| {
                let work = work_on(&workload, &name, &profile)?;
                Ok(BenchGpu {
                    name,
                    profile,
                    work,
                })
            })
            .collect::<Result<Vec<_>, SessionError>>()?;
        Ok(Self {
            items: gpus[0].work.items(),
            gpus,
            node,
            workload,
            energy_of,
        })
    }

    /// The parts of a job with this batch size on the first so many GPUs.
    pub fn jobs(
        &self,
        batch: u64,
        gpus: usize,
        seed: Option<Seed>,
    ) -> Result<Vec<Job>, SessionError> {
        let order = Order {
            batch: Some(batch),
            items: Some(self.items),
        };
        let jobs = self.gpus[..gpus].iter().enumerate().map(|(rank, gpu)| {
            let variation = match seed {
                None => Variation::NONE,
                Some(seed) => Variation::draw(gpu.profile.noise, of_rank(seed, rank)),
            };
            let order = order.share(&self.workload.profile, gpus);
            let workload = &self.workload.profile;
            Job::new(workload, &gpu.work, &gpu.profile, order, variation)
                .map_err(|problem| of_job(&self.workload, problem))
        });
        jobs.collect()
    }

    /// One run on GPUs fresh from their rest, so that it depends on nothing but itself; where it fails,
    /// why.
    pub fn together(
        &self,
        configuration: &Configuration,
        seed: Option<Seed>,
    ) -> Result<Result<Together, String>, SessionError> {
        let clock = Arc::new(VirtualClock::default());
        let count = configuration.gpus as usize;
        let jobs = self.jobs(configuration.batch, count, seed)?;
        let mut gpus = Vec::new();
        for (index, gpu) in self.gpus[..count].iter().enumerate() {
            let profile = gpu.profile.clone();
            let mut gpu = SimulatedGpu::new(index as u64, profile, clock.clone());
            if let Err(problem) = gpu.apply(&configuration.settings) {
                return Ok(Err(problem.to_string()));
            }
            gpus.push(gpu);
        }
        let all_reduce = match &self.node {
            Some(node) => node.all_reduce.clone(),
            None => usual_all_reduce(),
        };
        let exchange = all_reduce.exchange(count, self.workload.profile.gradients);
        let together = SimulatedGpu::run_together(&mut gpus, &jobs, exchange);
        Ok(together.map_err(|problem| problem.to_string()))
    }

    /// Such a run as a study keeps it.
    pub fn run(
        &self,
        configuration: &Configuration,
        seed: Option<Seed>,
    ) -> Result<RunEnd, SessionError> {
        let together = match self.together(configuration, seed)? {
            Ok(together) => together,
            Err(reason) => return Ok(RunEnd::Failed(reason)),
        };
        let energy = self.energy(&together, configuration.gpus as usize, seed);
        if !(together.time.is_finite() && energy.is_finite()) {
            let reason = "the simulation came to no finite result";
            return Ok(RunEnd::Failed(reason.to_owned()));
        }
        Ok(RunEnd::Done(RunResult {
            time: together.time,
            energy,
            items: together.ranks.iter().map(|rank| rank.items).sum(),
            phases: phases(&together),
        }))
    }

    /// Of those whose energy counts.
    fn energy(&self, together: &Together, in_use: usize, seed: Option<Seed>) -> Joules {
        let of_job: Joules = together.ranks.iter().map(|rank| rank.energy).sum();
        let unused: Watts = self.gpus[in_use..]
            .iter()
            .map(|gpu| gpu.profile.power.idle)
            .sum();
        match (self.energy_of, &self.node) {
            (EnergyOf::JobGpus, _) => of_job,
            (EnergyOf::Node, Some(node)) => {
                let most = self.gpus.iter().map(|gpu| gpu.profile.cap.default).sum();
                let spans = together.spans.iter().map(|span| {
                    let gpus = span.energy / span.time + unused;
                    node.at_the_wall(gpus, most, in_use) * span.time
                });
                let off = seed.map_or(0.0, |seed| 2.0 * seed.label("meter").uniform() - 1.0);
                spans.sum::<Joules>() * (1.0 + node.meter.accuracy.get() * off)
            }
            (EnergyOf::AllGpus | EnergyOf::Node, _) => of_job + unused * together.time,
        }
    }
}

/// The draws of one GPU of a job; the first one's are those it would have alone.
fn of_rank(seed: Seed, rank: usize) -> Seed {
    match rank {
        0 => seed,
        rank => seed.label("rank").number(rank as u64),
    }
}

/// Time of the first GPU, energy of all.
fn phases(together: &Together) -> Vec<PhaseResult> {
    let first = together.ranks[0].phases.iter();
    let energy = |name: &str| {
        let all = together.ranks.iter().flat_map(|rank| &rank.phases);
        all.filter(|phase| phase.name == name)
            .map(|phase| phase.energy)
            .sum()
    };
    first
        .map(|phase| PhaseResult {
            name: phase.name.clone(),
            time: phase.time,
            energy: energy(&phase.name),
        })
        .collect()
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
            let configuration = &plan.configurations[planned.configuration];
            done.push((index, bench.run(configuration, Some(planned.seed))));
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
