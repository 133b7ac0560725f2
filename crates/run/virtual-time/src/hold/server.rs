//! A simulated program that serves requests on one or several simulated GPUs.

use sweetspot_control::hold::{CapDivision, CapRange, HoldConfig, HoldSetting};
use sweetspot_control::tune::SettingsScope;
use sweetspot_device::Descriptor;
use sweetspot_predict::find_workload;
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{
    Chip, GpuProfile, Job, JobError, JobRequest, Limits, Load, ScaledWork, Variant, Variation,
    Workload, find_gpu, parse_gpu_list,
};
use sweetspot_stats::Seed;

use super::gpus::RunningGpu;
use super::{CapsOfGpus, Conditions, HoldOutcome, HoldSimulation};
use crate::SimulationError;
use crate::job::descriptors;

/// A GPU of a simulated server.
#[derive(Clone, Debug)]
pub(super) struct ServerGpu {
    profile: GpuProfile,
    pub(super) chip: Chip,
    work: ScaledWork,
}

/// A program that serves requests, batch after batch, on one or several simulated GPUs. Several GPUs divide the work of
/// each batch among them, and wait for the slowest one.
#[derive(Clone, Debug)]
pub struct SimulatedServer {
    gpus: Vec<ServerGpu>,
    workload: Workload,
    /// The power of a GPU that waits for others, relative to computing; 0 if it does not wait in a kernel.
    pub wait_activity: Ratio,
}

impl SimulatedServer {
    /// Finds the GPUs, such as `v100:2`, and the network by name or path.
    pub fn new(gpus: &str, network: &str, variant: &Variant) -> Result<Self, SimulationError> {
        let found = parse_gpu_list(gpus)?.into_iter();
        let found = found
            .map(|name| find_gpu(&name))
            .collect::<Result<Vec<_>, _>>()?;
        let study = found.first().and_then(|gpu| gpu.1.study.as_deref());
        let workload = find_workload(network, study, variant, &found)?;
        Self::from_profiles(found, workload)
    }

    /// Creates the server on GPUs of these profiles.
    pub fn from_profiles(
        gpus: Vec<(String, GpuProfile)>,
        workload: Workload,
    ) -> Result<Self, SimulationError> {
        let gpus = gpus.into_iter().map(|(name, profile)| {
            Ok::<_, SimulationError>(ServerGpu {
                work: workload.work_on(&name, &profile)?,
                chip: Chip::new(&profile),
                profile,
            })
        });
        Ok(Self {
            gpus: gpus.collect::<Result<_, _>>()?,
            workload,
            wait_activity: Ratio::ZERO,
        })
    }

    /// Simulates the server while a control algorithm controls it.
    pub fn hold(
        &self,
        config: HoldConfig,
        conditions: &Conditions,
    ) -> Result<HoldOutcome, SimulationError> {
        HoldSimulation::new(self, config, conditions)?.run()
    }

    /// The lowest and the default power cap of each GPU.
    pub fn cap_ranges(&self) -> Vec<CapRange> {
        let caps = self.gpus.iter().map(|gpu| &gpu.profile.cap);
        caps.map(|cap| CapRange {
            lowest: cap.min,
            highest: cap.default,
        })
        .collect()
    }

    /// The descriptors of the GPUs, in the same form as for real GPUs.
    pub fn descriptors(&self) -> Vec<Descriptor> {
        descriptors(self.gpus.iter().map(|gpu| &gpu.profile))
    }

    /// What each GPU draws without work.
    pub fn idle_powers(&self) -> Vec<Watts> {
        self.gpus.iter().map(|gpu| gpu.profile.power.idle).collect()
    }

    /// The items per second and the power of each GPU in the long run, at a batch size and with a cap for each GPU; `None`
    /// if the batch does not fit into memory.
    pub fn steady(
        &self,
        batch: u64,
        caps: &[Watts],
    ) -> Result<Option<(f64, Vec<Watts>)>, SimulationError> {
        let variations = vec![Variation::NONE; self.gpus.len()];
        let Some(mut loads) = self.iteration(batch, &variations)? else {
            return Ok(None);
        };
        let setting = |cap: Watts| HoldSetting {
            batch,
            core_clock: None,
            power_cap: Some(cap),
        };
        let limits: Vec<Limits> = self
            .gpus
            .iter()
            .zip(caps)
            .map(|(gpu, cap)| gpu.limits(&setting(*cap)))
            .collect();
        let alone = |loads: &[Vec<Load>]| {
            let each = self.gpus.iter().zip(&limits).zip(loads);
            each.map(|((gpu, limits), loads)| gpu.chip.steady(limits, loads))
                .collect::<Vec<_>>()
        };
        let times: Vec<_> = alone(&loads).iter().map(|steady| steady.time).collect();
        let slowest = times.iter().copied().reduce(|a, b| a.max(b));
        let slowest = slowest.unwrap_or_default();
        for (loads, time) in loads.iter_mut().zip(times) {
            let wait = self.wait_load(loads, slowest - time);
            loads.push(wait);
        }
        let together = alone(&loads);
        let powers = together.iter().map(|steady| steady.power).collect();
        Ok(Some((batch as f64 / slowest.get(), powers)))
    }

    /// The load of a GPU that waits for the others after these loads.
    pub(super) fn wait_load(&self, loads: &[Load], time: Seconds) -> Load {
        let kernels = loads.iter().rev().find_map(|load| match load {
            Load::Kernels {
                switching,
                memory_activity,
                ..
            } => Some((*switching, *memory_activity)),
            _ => None,
        });
        let activity = self.wait_activity.get();
        match kernels.filter(|_| activity > 0.0) {
            Some((switching, memory_activity)) => Load::Exchange {
                time,
                switching: switching * activity,
                memory_activity: memory_activity * activity,
            },
            None => Load::Waiting { host: time },
        }
    }

    /// The loads of a batch on each GPU; `None` if the batch does not fit into memory.
    pub(super) fn iteration(
        &self,
        batch: u64,
        variations: &[Variation],
    ) -> Result<Option<Vec<Vec<Load>>>, SimulationError> {
        let request = JobRequest {
            batch: Some(batch),
            items: Some(batch),
        };
        let workload = &self.workload.profile;
        let mut loads = Vec::new();
        for (gpu, variation) in self.gpus.iter().zip(variations) {
            match Job::new(workload, &gpu.work, &gpu.profile, request, *variation) {
                Ok(job) => {
                    let phases = job.iterations().0.iter();
                    let divided = phases.map(|phase| match self.gpus.len() {
                        1 => phase.load,
                        count => phase.load.divided_among(count),
                    });
                    loads.push(divided.collect());
                }
                Err(JobError::OutOfMemory { .. }) => return Ok(None),
                Err(problem) => return Err(self.workload.cannot_run(problem).into()),
            }
        }
        Ok(Some(loads))
    }

    /// The GPUs at rest.
    pub(super) fn running_gpus(&self, seed: Seed) -> Vec<RunningGpu<'_>> {
        let gpus = self.gpus.iter().enumerate();
        gpus.map(|(index, gpu)| {
            let own = match index {
                0 => seed,
                rank => seed.label("rank").number(rank as u64),
            };
            RunningGpu::new(gpu, Variation::draw(gpu.profile.noise, own))
        })
        .collect()
    }

    /// Whether watts may move between the GPUs.
    pub(super) fn is_balancing(&self, caps: &CapsOfGpus) -> bool {
        self.gpus.len() > 1 && *caps == CapsOfGpus::Divided(SettingsScope::Each)
    }

    /// How `hold` divides a total power cap among the GPUs; `None` if their caps are fixed, or if there is one GPU.
    pub(super) fn division(&self, setting: &HoldSetting, caps: &CapsOfGpus) -> Option<CapDivision> {
        let (total, CapsOfGpus::Divided(scope)) = (setting.power_cap?, caps) else {
            return None;
        };
        let idle: Vec<_> = self.idle_powers().into_iter().map(Some).collect();
        (self.gpus.len() > 1).then(|| CapDivision::new(self.cap_ranges(), &idle, *scope, total))
    }
}

impl ServerGpu {
    /// The limits on clock and power that a setting puts on the simulated GPU.
    pub(super) fn limits(&self, setting: &HoldSetting) -> Limits {
        let cap = setting.power_cap.unwrap_or(self.profile.cap.default);
        self.chip
            .limits(self.profile.enforced_cap(cap), setting.core_clock, None)
    }
}
