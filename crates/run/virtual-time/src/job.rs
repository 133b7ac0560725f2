//! A workload on simulated GPUs.

use std::sync::Arc;

use sweetspot_device::{Actuator, Descriptor, Device, Settings, Shortfall, VirtualClock};
use sweetspot_predict::find_workload;
use sweetspot_sim::{
    AllReduce, GpuProfile, GradientExchange, GroupOutcome, Job, JobError, JobRequest, NodeProfile,
    PlacementError, ScaledWork, SimulatedGpu, StretchSink, Variant, Variation, Workload, find_gpu,
    find_node, has_workloads, parse_gpu_list, uuid,
};
use sweetspot_stats::Seed;
use sweetspot_study::{Configuration, Failure, ReducedCap, Status};

use crate::SimulationError;

/// The names of a workload and of the simulated GPUs that it runs on, as the user gives them.
#[derive(Clone, Debug, Default)]
pub struct JobSpec {
    /// The GPUs as `NAME[:N],...`; if `None`, those of the node.
    pub gpus: Option<String>,
    /// The name of the node that contains the GPUs, if there is one.
    pub node: Option<String>,
    /// The workload: `NETWORK`, `NETWORK@STUDY` or the path of a profile.
    pub network: String,
    /// The variant of the workload (training or inference, convolution algorithm, data set).
    pub variant: Variant,
    /// The number of items in a run, all GPUs together; if `None`, as many as in the study that the profile was fitted
    /// to.
    pub items: Option<u64>,
}

/// A simulated GPU of a job.
pub struct JobGpu {
    /// The name of the GPU's profile.
    pub name: String,
    /// The GPU's profile.
    pub profile: GpuProfile,
    /// The work that one item causes on this GPU.
    pub work: ScaledWork,
}

/// A workload on simulated GPUs.
pub struct SimulatedJob {
    /// The GPUs of the job; at least one.
    pub gpus: Vec<JobGpu>,
    /// The profile of the node that contains the GPUs; `None` if there is none.
    pub node: Option<NodeProfile>,
    /// The workload that runs on the GPUs.
    pub workload: Workload,
    /// The number of items in a run, all GPUs together.
    pub items: u64,
}

impl SimulatedJob {
    /// Finds the GPUs, the node and the workload by name or path.
    pub fn new(spec: &JobSpec) -> Result<Self, SimulationError> {
        let node = spec.node.as_deref().map(find_node).transpose()?;
        let selector = match (&spec.gpus, &node) {
            (Some(gpus), _) => gpus,
            (None, Some((_, node))) => &node.gpus,
            (None, None) => return Err(SimulationError::NoGpu),
        };
        let mut gpus = Vec::new();
        for name in parse_gpu_list(selector)? {
            gpus.push(find_gpu(&name)?);
        }
        // A workload of the node's study is preferred to one of the GPU's study.
        let of_gpu = gpus[0].1.study.as_deref();
        let of_node = node.as_ref().map(|(name, _)| name.as_str());
        let study = of_node.filter(|study| has_workloads(study)).or(of_gpu);
        let workload = find_workload(&spec.network, study, &spec.variant, &gpus)?;
        let mut job = Self::from_profiles(gpus, node.map(|(_, node)| node), workload)?;
        job.items = spec.items.unwrap_or(job.items);
        Ok(job)
    }

    /// Creates a job on at least one GPU, with as many items as in the study that the workload's profile was
    /// fitted to.
    pub fn from_profiles(
        gpus: Vec<(String, GpuProfile)>,
        node: Option<NodeProfile>,
        workload: Workload,
    ) -> Result<Self, SimulationError> {
        let gpus = gpus
            .into_iter()
            .map(|(name, profile)| {
                let work = workload.work_on(&name, &profile)?;
                Ok(JobGpu {
                    name,
                    profile,
                    work,
                })
            })
            .collect::<Result<Vec<_>, SimulationError>>()?;
        Ok(Self {
            items: gpus[0].work.items(),
            gpus,
            node,
            workload,
        })
    }

    /// The part of the job that each of the first `gpus` GPUs does, at this batch size.
    pub fn jobs(
        &self,
        batch: u64,
        gpus: usize,
        seed: Option<Seed>,
    ) -> Result<Vec<Job>, SimulationError> {
        let request = JobRequest {
            batch: Some(batch),
            items: Some(self.items),
        };
        let jobs = self.gpus[..gpus].iter().enumerate().map(|(rank, gpu)| {
            let variation = match seed {
                None => Variation::NONE,
                Some(seed) => Variation::draw(gpu.profile.noise, rank_seed(seed, rank)),
            };
            let request = request.share(&self.workload.profile, gpus);
            let workload = &self.workload.profile;
            Job::new(workload, &gpu.work, &gpu.profile, request, variation)
                .map_err(|problem| self.workload.cannot_run(problem).into())
        });
        jobs.collect()
    }

    /// Simulates one run, or returns why the run fails. The GPUs start idle and cool, so a run does not depend on
    /// earlier runs. `sink` receives the power of each GPU.
    pub fn simulate(
        &self,
        configuration: &Configuration,
        seed: Option<Seed>,
        sink: &mut (impl StretchSink + ?Sized),
    ) -> Result<Result<GroupOutcome, Failure>, SimulationError> {
        let settings = (0..configuration.gpus as usize).map(|gpu| configuration.settings(gpu));
        self.simulate_at(
            configuration.batch(),
            &settings.collect::<Vec<_>>(),
            seed,
            sink,
        )
    }

    /// Simulates one run, as [`Self::simulate`] does, on as many GPUs as there are settings.
    pub fn simulate_at(
        &self,
        batch: Option<u64>,
        settings: &[Settings],
        seed: Option<Seed>,
        sink: &mut (impl StretchSink + ?Sized),
    ) -> Result<Result<GroupOutcome, Failure>, SimulationError> {
        let clock = Arc::new(VirtualClock::default());
        let count = settings.len();
        let batch = batch.unwrap_or(self.workload.profile.batch);
        let jobs = match self.jobs(batch, count, seed) {
            Err(SimulationError::Placement(PlacementError {
                problem: problem @ JobError::OutOfMemory { .. },
                ..
            })) => {
                return Ok(Err(Failure::new(Status::OutOfMemory, problem.to_string())));
            }
            jobs => jobs?,
        };
        let failed = |problem: String| Ok(Err(Failure::new(Status::Failed, problem)));
        let mut gpus = Vec::new();
        for (index, gpu) in self.gpus[..count].iter().enumerate() {
            let profile = gpu.profile.clone();
            let mut gpu = SimulatedGpu::new(index as u64, profile, clock.clone());
            if let Err(problem) = gpu.apply(&settings[index]) {
                return failed(problem.to_string());
            }
            gpus.push(gpu);
        }
        let all_reduce = AllReduce::of_node(self.node.as_ref());
        let exchange = self.exchange(&all_reduce, count);
        match SimulatedGpu::run_together(&mut gpus, &jobs, exchange, sink) {
            Ok(together) if together.time.is_finite() => Ok(Ok(together)),
            Ok(_) => failed("the simulation gave no finite result".to_owned()),
            Err(problem) => failed(problem.to_string()),
        }
    }

    /// The exchange of gradients between the first `count` GPUs of the job.
    pub fn exchange(&self, all_reduce: &AllReduce, count: usize) -> GradientExchange {
        let gpus = self.gpus[..count].iter();
        let models: Vec<&str> = gpus.map(|gpu| gpu.profile.name.as_str()).collect();
        all_reduce.exchange_between(&models, self.workload.profile.gradients)
    }

    /// The power caps of a configuration for which the GPU boards enforce lower ones.
    pub fn reduced_caps(&self, configuration: &Configuration) -> Vec<ReducedCap> {
        let gpus = self.gpus[..configuration.gpus as usize].iter().enumerate();
        gpus.filter_map(|(index, gpu)| {
            let requested = configuration.settings(index).power_cap?;
            let enforced = gpu.profile.enforced_cap(requested);
            (enforced < requested).then(|| ReducedCap {
                device: uuid(&gpu.profile.name, index as u64),
                requested,
                enforced,
                reason: Shortfall::BoardLimit,
            })
        })
        .collect()
    }

    /// The descriptors of the GPUs, in the same form as for real GPUs.
    pub fn descriptors(&self) -> Vec<Descriptor> {
        descriptors(self.gpus.iter().map(|gpu| &gpu.profile))
    }

    /// A hash of everything that a run depends on besides its configuration and seed.
    pub fn fingerprint(&self) -> u64 {
        let mut print = Seed::new(0);
        for gpu in &self.gpus {
            // No simulated run depends on the constants of predictions.
            let profile = GpuProfile {
                kernels: None,
                kernels_of: None,
                ..gpu.profile.clone()
            };
            let profile = stable_text(&profile)
                .replace("kernels: None, kernels_of: None, ", "")
                .replace("multiprocessors: None, ", "")
                .replace(", clock_offsets: false", "");
            let work = stable_text(&gpu.work);
            print = print.label(&format!("{profile}{work}"));
        }
        // Processors have no effect on runs in virtual time.
        let node = self.node.clone().map(|node| NodeProfile {
            processors: None,
            ..node
        });
        let node = node.map(|node| stable_text(&node).replace(", processors: None }", " }"));
        print
            .label(&stable_text(&self.workload.profile))
            .label(&node.unwrap_or_default())
            .number(self.items)
            .get()
    }
}

/// The random seed of one GPU of a job. The first GPU has the same seed as in a job on one GPU.
fn rank_seed(seed: Seed, rank: usize) -> Seed {
    match rank {
        0 => seed,
        rank => seed.label("rank").number(rank as u64),
    }
}

/// The debug text of a value, with the type names that the first version had: the fingerprints of stored
/// studies are hashes of that text.
fn stable_text(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}")
        .replace("ItemWork {", "On {")
        .replace("ScaledWork {", "Work {")
        .replace(", iterations: []", "")
        .replace(", steps: {}", "")
        .replace(", gpus_per_link: 1 }", " }")
        .replace("unlike_bandwidth: None, ", "")
}

/// The descriptors of simulated GPUs, in the same form as for real GPUs.
pub(crate) fn descriptors<'a>(profiles: impl Iterator<Item = &'a GpuProfile>) -> Vec<Descriptor> {
    let clock = Arc::new(VirtualClock::default());
    let descriptor = |(index, profile): (usize, &GpuProfile)| {
        let gpu = SimulatedGpu::new(index as u64, profile.clone(), clock.clone());
        gpu.descriptor().clone()
    };
    profiles.enumerate().map(descriptor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A type or field of a profile that is renamed would keep stored studies from being resumed.
    #[test]
    fn fingerprints_are_those_of_stored_studies() {
        let fingerprint = |gpus: Option<&str>, node: Option<&str>, network: &str| {
            let spec = JobSpec {
                gpus: gpus.map(str::to_owned),
                node: node.map(str::to_owned),
                network: network.to_owned(),
                ..JobSpec::default()
            };
            SimulatedJob::new(&spec).unwrap().fingerprint()
        };
        let v100 = fingerprint(Some("v100"), None, "resnet50");
        assert_eq!(v100, 15_246_296_466_178_254_006);
        let node = fingerprint(None, Some("node_power_capping_2023"), "xception");
        assert_eq!(node, 2_011_773_197_926_988_605);
    }

    /// A key that was added later is not in the text of profiles that do not use it.
    #[test]
    fn later_keys_do_not_change_the_text_of_older_nodes() {
        let (_, node) = find_node("multi_gpu_2018").unwrap();
        let text = stable_text(&node);
        assert!(text.contains("activity: "), "{text}");
        assert!(!text.contains("gpus_per_link"), "{text}");
    }
}
