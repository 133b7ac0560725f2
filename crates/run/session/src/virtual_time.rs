//! Runs on simulated GPUs in virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;

use sweetspot_device::{Actuator, Descriptor, Device, Shortfall, VirtualClock};
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_sim::{
    GpuProfile, GroupOutcome, Job, JobError, NodeProfile, Order, SimulatedGpu, StretchSink, Trace,
    Variant, Variation, Work, Workload, find_gpu, find_node, find_workload, has_workloads, uuid,
};
use sweetspot_stats::Seed;
use sweetspot_study::{
    Column, Configuration, DeviceEnergy, Energies, Energy, EnergyOf, Enforced, Failure,
    PhaseResult, Quantity, RunEnd, RunResult, Series, Status,
};

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
        let mut bench = Self::of(gpus, node.map(|(_, node)| node), workload)?;
        bench.items = setup.items.unwrap_or(bench.items);
        Ok(bench)
    }

    /// Puts a workload on GPUs, at least one, to do what its study did.
    pub fn of(
        gpus: Vec<(String, GpuProfile)>,
        node: Option<NodeProfile>,
        workload: Workload,
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
    /// why. `sink` sees each GPU of the job.
    pub fn together(
        &self,
        configuration: &Configuration,
        seed: Option<Seed>,
        sink: &mut (impl StretchSink + ?Sized),
    ) -> Result<Result<GroupOutcome, Failure>, SessionError> {
        let clock = Arc::new(VirtualClock::default());
        let count = configuration.gpus as usize;
        let batch = configuration.batch();
        let batch = batch.unwrap_or(self.workload.profile.batch);
        let jobs = match self.jobs(batch, count, seed) {
            Err(SessionError::Job {
                problem: problem @ JobError::OutOfMemory { .. },
                ..
            }) => {
                return Ok(Err(Failure::new(Status::OutOfMemory, problem.to_string())));
            }
            jobs => jobs?,
        };
        let failed = |problem: String| Ok(Err(Failure::new(Status::Failed, problem)));
        let mut gpus = Vec::new();
        for (index, gpu) in self.gpus[..count].iter().enumerate() {
            let profile = gpu.profile.clone();
            let mut gpu = SimulatedGpu::new(index as u64, profile, clock.clone());
            if let Err(problem) = gpu.apply(&configuration.settings(index)) {
                return failed(problem.to_string());
            }
            gpus.push(gpu);
        }
        let all_reduce = match &self.node {
            Some(node) => node.all_reduce.clone(),
            None => usual_all_reduce(),
        };
        let exchange = all_reduce.exchange(count, self.workload.profile.gradients);
        match SimulatedGpu::run_together(&mut gpus, &jobs, exchange, sink) {
            Ok(together) if together.time.is_finite() => Ok(Ok(together)),
            Ok(_) => failed("the simulation came to no finite result".to_owned()),
            Err(problem) => failed(problem.to_string()),
        }
    }

    /// Such a run as a study keeps it.
    pub fn run(
        &self,
        configuration: &Configuration,
        seed: Option<Seed>,
    ) -> Result<RunEnd, SessionError> {
        let together = self.together(configuration, seed, &mut ())?;
        Ok(self.end(together, configuration, seed))
    }

    /// The same with a sample of power, clock and utilisation every so often.
    pub fn run_sampled(
        &self,
        configuration: &Configuration,
        seed: Option<Seed>,
    ) -> Result<(RunEnd, Vec<Series>), SessionError> {
        let gpus = configuration.gpus as usize;
        let mut traces = vec![Trace::every(SAMPLE_PERIOD); gpus];
        let together = self.together(configuration, seed, traces.as_mut_slice())?;
        let series = traces.into_iter().enumerate();
        let series = series.map(|(index, trace)| self.series(index, trace));
        let series = series.collect();
        Ok((self.end(together, configuration, seed), series))
    }

    fn series(&self, index: usize, trace: Trace) -> Series {
        let profile = &self.gpus[index].profile;
        let [power, mut clock, utilisation] = trace.into_parts();
        let default = profile.core.default.get() as f32;
        for clock in &mut clock {
            *clock *= default;
        }
        let period = SAMPLE_PERIOD.nanos();
        Series {
            device: uuid(&profile.name, index as u64).to_string(),
            source: METHOD.to_owned(),
            nanos: (1..=power.len() as i64).map(|n| n * period).collect(),
            columns: vec![
                (Quantity::Power, Column::All(power)),
                (Quantity::Utilisation, Column::All(utilisation)),
                (Quantity::CoreClock, Column::All(clock)),
            ],
            throttle: None,
        }
    }

    fn end(
        &self,
        together: Result<GroupOutcome, Failure>,
        configuration: &Configuration,
        seed: Option<Seed>,
    ) -> RunEnd {
        let together = match together {
            Ok(together) => together,
            Err(failure) => return RunEnd::Failed(failure),
        };
        let in_use = configuration.gpus as usize;
        let of = |of| self.energy(of, &together, in_use, seed).map(Energy::exact);
        let energies = Energies {
            job_gpus: of(EnergyOf::JobGpus),
            all_gpus: of(EnergyOf::AllGpus),
            node: of(EnergyOf::Node),
        };
        let devices = self.gpus.iter().enumerate().map(|(index, gpu)| {
            let idle = gpu.profile.power.idle * together.time;
            let rank = together.ranks.get(index).map(|rank| rank.energy);
            DeviceEnergy {
                device: uuid(&gpu.profile.name, index as u64),
                in_job: index < in_use,
                energy: Some(Energy::exact(rank.unwrap_or(idle))),
                method: METHOD.to_owned(),
            }
        });
        RunEnd::Done(RunResult {
            time: together.time,
            energies,
            devices: devices.collect(),
            items: Some(together.ranks.iter().map(|rank| rank.items as f64).sum()),
            phases: phases(&together),
            values: BTreeMap::new(),
        })
    }

    /// Of those whose energy counts; nothing where there is no meter.
    fn energy(
        &self,
        of: EnergyOf,
        together: &GroupOutcome,
        in_use: usize,
        seed: Option<Seed>,
    ) -> Option<Joules> {
        let of_job: Joules = together.ranks.iter().map(|rank| rank.energy).sum();
        let unused: Watts = self.gpus[in_use..]
            .iter()
            .map(|gpu| gpu.profile.power.idle)
            .sum();
        match of {
            EnergyOf::JobGpus => Some(of_job),
            EnergyOf::AllGpus => Some(of_job + unused * together.time),
            EnergyOf::Node => {
                let node = self.node.as_ref()?;
                let most = self.gpus.iter().map(|gpu| gpu.profile.cap.default).sum();
                let spans = together.spans.iter().map(|span| {
                    let gpus = span.energy / span.time + unused;
                    node.wall_power(gpus, most, in_use) * span.time
                });
                let off = seed.map_or(0.0, |seed| 2.0 * seed.label("meter").uniform() - 1.0);
                Some(spans.sum::<Joules>() * (1.0 + node.meter.accuracy.get() * off))
            }
        }
    }

    /// Caps of a configuration that the boards enforce only in part.
    pub fn enforced(&self, configuration: &Configuration) -> Vec<Enforced> {
        let gpus = self.gpus[..configuration.gpus as usize].iter().enumerate();
        gpus.filter_map(|(index, gpu)| {
            let requested = configuration.settings(index).power_cap?;
            let enforced = gpu.profile.enforced_cap(requested);
            (enforced < requested).then(|| Enforced {
                device: uuid(&gpu.profile.name, index as u64),
                requested,
                enforced,
                reason: Shortfall::BoardLimit,
            })
        })
        .collect()
    }

    /// The GPUs, described like real ones.
    pub fn descriptors(&self) -> Vec<Descriptor> {
        let clock = Arc::new(VirtualClock::default());
        let gpus = self.gpus.iter().enumerate();
        gpus.map(|(index, gpu)| {
            SimulatedGpu::new(index as u64, gpu.profile.clone(), clock.clone())
                .descriptor()
                .clone()
        })
        .collect()
    }

    /// Of everything that a run depends on besides its configuration and seed.
    pub fn fingerprint(&self) -> u64 {
        let mut print = Seed::new(0);
        for gpu in &self.gpus {
            print = print.label(&format!("{:?}{:?}", gpu.profile, gpu.work));
        }
        let node = self.node.as_ref().map(|node| format!("{node:?}"));
        print
            .label(&format!("{:?}", self.workload.profile))
            .label(&node.unwrap_or_default())
            .number(self.items)
            .get()
    }
}

/// As the driver's buffer has it.
const SAMPLE_PERIOD: Seconds = Seconds::new(0.02);
/// What produced the joules.
const METHOD: &str = "simulator";

/// The draws of one GPU of a job; the first one's are those it would have alone.
fn of_rank(seed: Seed, rank: usize) -> Seed {
    match rank {
        0 => seed,
        rank => seed.label("rank").number(rank as u64),
    }
}

/// Time of the first GPU, energy of all.
fn phases(together: &GroupOutcome) -> Vec<PhaseResult> {
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
