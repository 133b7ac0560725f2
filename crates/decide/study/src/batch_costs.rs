//! The costs of a batch, and how they scale with the number of GPUs, as in tables 4 to 9 of multi_gpu_2018.

use sweetspot_quantity::{Joules, Ratio, Seconds};

use crate::{Axis, Configuration, DevicePhase, EnergyOf, PhaseResult, Point, Study};

/// The names of phases in which a GPU does no work of its own: it waits for other GPUs or exchanges data with them.
pub const WAITING_PHASES: [&str; 5] = ["wait", "exchange", "barrier", "all_reduce", "allreduce"];

/// The beginning of the warning of a run that says why the energy of its phases is unknown.
pub const NO_PHASE_ENERGY: &str = "no energy by phase: ";

impl Point {
    /// Why the energy of phases is unknown in a run of this point; `None` if it is known, or no phases are marked.
    pub fn phase_problem(&self) -> Option<&str> {
        let mut warnings = self.runs.iter().flat_map(|run| &run.warnings);
        warnings.find_map(|warning| warning.strip_prefix(NO_PHASE_ENERGY))
    }
}

/// The mean time and energy of one batch, on all GPUs of the job together.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchCosts {
    /// The number of items in a batch, on all GPUs together.
    pub batch: u64,
    /// The number of batches in a run.
    pub iterations: f64,
    /// The time of a batch.
    pub time: Seconds,
    /// The energy of a batch; absent if it is unknown.
    pub energy: Option<Joules>,
    /// The phases of a batch.
    pub phases: Vec<PhaseResult>,
}

impl BatchCosts {
    /// The phase with this name.
    pub fn phase(&self, name: &str) -> Option<&PhaseResult> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// The waiting of all GPUs: the longest time of a GPU and the energy of all; `None` if no such phase is marked.
    pub fn waiting(&self) -> Option<DevicePhase> {
        waiting(&self.phases)
    }
}

/// The waiting in these phases: the longest time of a GPU and the energy of all; `None` if there is no waiting phase.
fn waiting(phases: &[PhaseResult]) -> Option<DevicePhase> {
    let is_waiting = |phase: &&PhaseResult| WAITING_PHASES.contains(&phase.name.as_str());
    let waits: Vec<&PhaseResult> = phases.iter().filter(is_waiting).collect();
    let gpus = waits.first()?.by_device.len();
    let time_of = |gpu: usize| -> Seconds {
        let times = waits.iter().filter_map(|phase| phase.by_device.get(gpu));
        times.map(|one| one.time).sum()
    };
    let longest = (0..gpus).map(time_of).reduce(Seconds::max);
    Some(DevicePhase {
        time: longest.unwrap_or_else(|| waits.iter().map(|phase| phase.time).sum()),
        energy: waits.iter().map(|phase| phase.energy).sum(),
    })
}

/// The speed of a job compared with the same job on fewer GPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// The number of GPUs that the job is compared with.
    pub base_gpus: u64,
    /// The speed relative to that on `base_gpus`.
    pub speed_up: Ratio,
    /// The speed-up divided by the factor between the numbers of GPUs.
    pub efficiency: Ratio,
}

impl Study {
    /// The mean costs of a batch at a point; `None` if its batch size or the number of its items is unknown.
    pub fn batch_costs(&self, point: &Point) -> Option<BatchCosts> {
        let outcome = point.outcome()?;
        let batch = point
            .configuration
            .batch()
            .or(self.subject.workload.batch)?;
        let iterations = outcome.items.filter(|items| *items > 0.0)? / batch as f64;
        let share = |phase: &DevicePhase| DevicePhase {
            time: phase.time / iterations,
            energy: phase.energy.map(|energy| energy / iterations),
        };
        let phases = point.phases().into_iter().map(|phase| PhaseResult {
            name: phase.name,
            time: phase.time / iterations,
            energy: phase.energy.map(|energy| energy / iterations),
            by_device: phase.by_device.iter().map(share).collect(),
        });
        Some(BatchCosts {
            batch,
            iterations,
            time: outcome.time / iterations,
            energy: outcome.energy.map(|energy| energy / iterations),
            phases: phases.collect(),
        })
    }

    /// The share of a point's energy that its GPUs draw while they wait for each other; `None` if that is unknown.
    pub fn waiting_share(&self, point: &Point) -> Option<Ratio> {
        let waiting = waiting(&point.phases())?;
        let all = point.energy_by_device().into_iter();
        let all: Joules = all
            .take(point.configuration.gpus as usize)
            .map(|(_, energy)| energy)
            .sum();
        (all > Joules::ZERO).then_some(waiting.energy? / all)
    }

    /// The scaling of a point against the one with the fewest GPUs that is otherwise the same; `None` if there is no such
    /// point, or it is the point itself.
    pub fn scaling(&self, point: &Point) -> Option<Scaling> {
        let same = |other: &&Point| {
            let with_gpus = Configuration {
                gpus: point.configuration.gpus,
                ..other.configuration.clone()
            };
            with_gpus == point.configuration && other.outcome().is_some()
        };
        let all = self.points.iter().chain([&self.reference]);
        let base = all
            .filter(same)
            .min_by_key(|other| other.configuration.gpus)?;
        let (gpus, base_gpus) = (point.configuration.gpus, base.configuration.gpus);
        let (here, there) = (point.outcome()?, base.outcome()?);
        let work = match (here.items, there.items) {
            (Some(here), Some(there)) if there > 0.0 => here / there,
            _ => 1.0,
        };
        let speed_up = (there.time / here.time).get() * work;
        let is_base = gpus == base_gpus;
        (!is_base && speed_up.is_finite()).then(|| Scaling {
            base_gpus,
            speed_up: Ratio::new(speed_up),
            efficiency: Ratio::new(speed_up * base_gpus as f64 / gpus as f64),
        })
    }

    /// The energy of the job's GPUs as multi_gpu_2018 computes it: one GPU of each model is measured, and its energy is
    /// multiplied by the number of GPUs of that model. `None` for one GPU, or if an energy is unknown.
    pub fn one_measured_and_multiplied(&self, point: &Point) -> Option<Joules> {
        let gpus = point.configuration.gpus as usize;
        if gpus < 2 || self.energy_of() != EnergyOf::JobGpus {
            return None;
        }
        let devices = self.subject.devices.get(..gpus)?;
        let energies = point.energy_by_device();
        let measured = |name: &str| {
            let first = devices.iter().find(|device| device.name == name)?;
            let mut all = energies.iter();
            let (_, energy) = all.find(|(uuid, _)| *uuid == *first.id.as_str())?;
            Some(*energy)
        };
        devices.iter().map(|device| measured(&device.name)).sum()
    }

    /// Whether the study compares batch sizes or numbers of GPUs.
    pub fn compares_batches_or_gpus(&self) -> bool {
        let batch = Axis::Parameter(crate::BATCH_PARAMETER.to_owned());
        let varied = self.varied_axes();
        varied.contains(&Axis::Gpus) || varied.contains(&batch)
    }
}
