//! The profiles that fitted values make, and what the simulator makes of them.

use sweetspot_quantity::{Bytes, Quantity, Ratio, Seconds, Watts};
use sweetspot_sim::{GpuProfile, ItemWork, MemoryNeed, PhaseShare, Workload, WorkloadProfile};
use sweetspot_study::{Configuration, RunEnding};

use super::board::Board;
use super::physics::{MOST_IDLE, Physics};
use super::search::Key;
use super::{MeasuredPoint, MeasuredStudy, StudyFitError};
use crate::batch_rows::{five_digits, phases};
use sweetspot_virtual_time::SimulatedJob;

/// A simulated GPU and its workload.
pub struct Made {
    pub gpu: GpuProfile,
    pub workload: WorkloadProfile,
}

/// Batches of so many times the largest measured one are taken to fit.
const ROOM: f64 = 8.0;

impl Made {
    pub fn new(study: &MeasuredStudy, board: &Board, physics: &Physics, keys: &[Key]) -> Self {
        let mut gpu = board.profile.clone();
        gpu.core.voltage_knee = gpu.core.default * physics.knee;
        gpu.core.voltage_floor = Ratio::new(physics.floor);
        gpu.power.idle = gpu.power.idle.min(Watts::new(MOST_IDLE * physics.waiting));
        gpu.power.context = Watts::new(physics.waiting) - gpu.power.idle;
        gpu.power.memory = Watts::new(physics.memory_power);
        gpu.power.core = Watts::new(physics.core_power);
        let workload = workload(study, &gpu, physics, keys);
        Self { gpu, workload }
    }

    /// With the digits that the file has.
    pub fn rounded(mut self) -> Self {
        fn round<Q: Quantity>(value: &mut Q) {
            *value = Q::from_base(five_digits(value.base()));
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

    /// Time and energy of every point, without noise.
    pub fn run_all(&self, study: &MeasuredStudy) -> Result<Vec<(f64, f64)>, StudyFitError> {
        study.points.iter().map(|point| self.run(point)).collect()
    }

    fn run(&self, point: &MeasuredPoint) -> Result<(f64, f64), StudyFitError> {
        let refused = |reason: &dyn std::fmt::Display| StudyFitError::Refused(reason.to_string());
        let workload = Workload {
            name: self.workload.network.clone(),
            profile: self.workload.clone(),
        };
        let gpus = vec![(self.gpu.name.clone(), self.gpu.clone())];
        let mut job = SimulatedJob::from_profiles(gpus, None, workload)
            .map_err(|problem| refused(&problem))?;
        job.items = point.items;
        let configuration = Configuration::on(1)
            .with_settings(point.settings)
            .with_batch(point.batch);
        match job.run(&configuration, None) {
            Ok(RunEnding::Done(run)) => {
                let energy = run.energies.job_gpus.map(|energy| energy.value.get());
                Ok((run.time.get(), energy.ok_or(StudyFitError::NoResult)?))
            }
            Ok(RunEnding::Failed(failure)) => Err(refused(&failure.reason)),
            Err(problem) => Err(refused(&problem)),
        }
    }
}

fn workload(
    study: &MeasuredStudy,
    gpu: &GpuProfile,
    physics: &Physics,
    keys: &[Key],
) -> WorkloadProfile {
    let largest = study.points.iter().max_by_key(|point| point.batch);
    let (batch, items) = largest.map_or((1, 1), |point| (point.batch, point.items));
    let names = |wanted: &[(Key, &str)]| -> Vec<String> {
        let free = wanted.iter().filter(|(key, _)| keys.contains(key));
        free.map(|(_, name)| (*name).to_owned()).collect()
    };
    WorkloadProfile {
        network: study.network.clone(),
        mode: study.mode,
        batch,
        half_speed_batch: physics.half_speed_batch,
        split_batch: false,
        gradients: Bytes::ZERO,
        fitted: names(&[(Key::HalfSpeed, "half_speed_batch")]),
        memory: memory(study, gpu, batch),
        phases: shares(study),
        conv_algorithms: Vec::new(),
        datasets: Vec::new(),
        on: vec![ItemWork {
            gpu: gpu.name.clone(),
            fitted: names(&[
                (Key::HostPerBatch, "host_per_batch"),
                (Key::Host, "host"),
                (Key::Launch, "launch"),
                (Key::Item, "core"),
                (Key::MemoryShare, "memory"),
                (Key::MemoryPerBatch, "memory_per_batch"),
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
        }],
    }
}

fn shares(study: &MeasuredStudy) -> Vec<PhaseShare> {
    let sum: f64 = study.phases.iter().map(|phase| phase.core.get()).sum();
    match (sum - 1.0).abs() < 1e-3 {
        true => study.phases.clone(),
        false => phases(study.mode),
    }
}

/// What fitted fits, and what did not does not.
fn memory(study: &MeasuredStudy, gpu: &GpuProfile, largest: u64) -> MemoryNeed {
    let capacity = gpu.memory.capacity;
    let fixed = Bytes::new(0.5e9).min(capacity * 0.1);
    let room = match study.too_large {
        Some(refused) if refused > largest => (largest as f64 * refused as f64).sqrt(),
        _ => ROOM * largest as f64,
    };
    MemoryNeed {
        fixed,
        per_item: (capacity - fixed) / room,
    }
}
