//! Makes profiles from fitted values, and simulates runs with them.

use sweetspot_quantity::{Bytes, Quantity, Ratio, Seconds, Watts};
use sweetspot_sim::{GpuProfile, ItemWork, MemoryNeed, PhaseShare, Workload, WorkloadProfile};
use sweetspot_study::{Configuration, RunEnding};

use super::base_gpu::BaseGpu;
use super::parameters::Parameter;
use super::physics::{MAX_IDLE_SHARE, Physics};
use super::{MeasuredPoint, MeasuredStudy, StudyFitError};
use crate::batch_rows::{default_phases, round_to_five_digits};
use sweetspot_virtual_time::SimulatedJob;

/// The fitted profiles of a GPU and its workload.
pub struct FittedProfiles {
    pub gpu: GpuProfile,
    pub workload: WorkloadProfile,
}

/// The assumed ratio of the largest batch that fits into memory to the largest measured one.
const MEMORY_HEADROOM: f64 = 8.0;

impl FittedProfiles {
    /// Makes the profiles of the GPU and the workload from fitted values.
    pub fn new(
        study: &MeasuredStudy,
        base: &BaseGpu,
        physics: &Physics,
        parameters: &[Parameter],
    ) -> Self {
        let mut gpu = base.profile.clone();
        gpu.core.voltage_knee = gpu.core.default * physics.knee;
        gpu.core.voltage_floor = Ratio::new(physics.floor);
        gpu.power.idle = gpu
            .power
            .idle
            .min(Watts::new(MAX_IDLE_SHARE * physics.waiting));
        gpu.power.context = Watts::new(physics.waiting) - gpu.power.idle;
        gpu.power.memory = Watts::new(physics.memory_power);
        gpu.power.core = Watts::new(physics.core_power);
        let workload = workload(study, &gpu, physics, parameters);
        Self { gpu, workload }
    }

    /// The profiles with their numbers rounded to the digits that their file contains.
    pub fn rounded(mut self) -> Self {
        fn round<Q: Quantity>(value: &mut Q) {
            *value = Q::from_base(round_to_five_digits(value.base()));
        }
        let power = &mut self.gpu.power;
        for part in [
            &mut power.idle,
            &mut power.context,
            &mut power.memory,
            &mut power.core,
        ] {
            round(part);
        }
        round(&mut self.gpu.core.voltage_knee);
        round(&mut self.gpu.core.voltage_floor);
        round(&mut self.gpu.noise);
        self.workload = crate::batch_rows::rounded(self.workload);
        for on in &mut self.workload.on {
            round(&mut on.host_per_batch);
        }
        self
    }

    /// Simulates every point without noise, and returns its time and energy.
    pub fn run_all(&self, study: &MeasuredStudy) -> Result<Vec<(f64, f64)>, StudyFitError> {
        study.points.iter().map(|point| self.run(point)).collect()
    }

    /// Simulates one point without noise, and returns its time and energy.
    fn run(&self, point: &MeasuredPoint) -> Result<(f64, f64), StudyFitError> {
        let error = |reason: &dyn std::fmt::Display| StudyFitError::Refused(reason.to_string());
        let workload = Workload {
            name: self.workload.network.clone(),
            profile: self.workload.clone(),
        };
        let gpus = vec![(self.gpu.name.clone(), self.gpu.clone())];
        let mut job =
            SimulatedJob::from_profiles(gpus, None, workload).map_err(|problem| error(&problem))?;
        job.items = point.items;
        let configuration = Configuration::on(1)
            .with_settings(point.settings)
            .with_batch(point.batch);
        match job.run(&configuration, None) {
            Ok(RunEnding::Done(run)) => {
                let energy = run.energies.job_gpus.map(|energy| energy.value.get());
                Ok((run.time.get(), energy.ok_or(StudyFitError::NoResult)?))
            }
            Ok(RunEnding::Failed(failure)) => Err(error(&failure.reason)),
            Err(problem) => Err(error(&problem)),
        }
    }
}

/// Makes the profile of the workload from fitted values.
fn workload(
    study: &MeasuredStudy,
    gpu: &GpuProfile,
    physics: &Physics,
    parameters: &[Parameter],
) -> WorkloadProfile {
    let largest = study.points.iter().max_by_key(|point| point.batch);
    let (batch, items) = largest.map_or((1, 1), |point| (point.batch, point.items));
    let names = |wanted: &[(Parameter, &str)]| -> Vec<String> {
        let free = wanted
            .iter()
            .filter(|(parameter, _)| parameters.contains(parameter));
        free.map(|(_, name)| (*name).to_owned()).collect()
    };
    WorkloadProfile {
        network: study.network.clone(),
        mode: study.mode,
        batch,
        half_speed_batch: physics.half_speed_batch,
        split_batch: false,
        gradients: Bytes::ZERO,
        fitted: names(&[(Parameter::HalfSpeed, "half_speed_batch")]),
        memory: memory(study, gpu, batch),
        phases: phase_shares(study),
        conv_algorithms: Vec::new(),
        datasets: Vec::new(),
        on: vec![ItemWork {
            gpu: gpu.name.clone(),
            fitted: names(&[
                (Parameter::HostPerBatch, "host_per_batch"),
                (Parameter::Host, "host"),
                (Parameter::Launch, "launch"),
                (Parameter::Item, "core"),
                (Parameter::MemoryShare, "memory"),
                (Parameter::MemoryPerBatch, "memory_per_batch"),
            ]),
            items,
            startup: Seconds::ZERO,
            host_per_batch: Seconds::new(physics.host_per_batch),
            host: Seconds::new(physics.host),
            launch: Seconds::new(physics.launch),
            core: Seconds::new(physics.core),
            memory: Seconds::new(physics.memory),
            memory_per_batch: Seconds::new(physics.memory_per_batch),
            switching: Ratio::new(1.0),
            memory_activity: Ratio::new(1.0),
            iterations: Vec::new(),
            steps: Default::default(),
        }],
    }
}

/// The phases of the study, or the assumed phases if the study's shares do not add up to 1.
fn phase_shares(study: &MeasuredStudy) -> Vec<PhaseShare> {
    let sum: f64 = study.phases.iter().map(|phase| phase.core.get()).sum();
    match (sum - 1.0).abs() < 1e-3 {
        true => study.phases.clone(),
        false => default_phases(study.mode),
    }
}

/// The memory that the workload needs. It is set such that the largest batch that ran fits, and the smallest batch that
/// ran out of memory does not.
fn memory(study: &MeasuredStudy, gpu: &GpuProfile, largest: u64) -> MemoryNeed {
    let capacity = gpu.memory.capacity;
    let fixed = Bytes::new(0.5e9).min(capacity * 0.1);
    let room = match study.smallest_failed_batch {
        Some(failed) if failed > largest => (largest as f64 * failed as f64).sqrt(),
        _ => MEMORY_HEADROOM * largest as f64,
    };
    MemoryNeed {
        fixed,
        per_item: (capacity - fixed) / room,
    }
}
