//! The simulated jobs of multi_gpu_2018, and the steps of their batches by the paper's definitions.

use sweetspot_device::Settings;
use sweetspot_sim::{Outcome, Variant};
use sweetspot_study::{AxisText, BATCH_PARAMETER, BatchCosts, Definition, EnergyOf, Study};

use super::STUDY;
use crate::PapersError;
use crate::profiles::Profiles;
use crate::simulated_runs::SweepRunner;

/// The profile of the Titan X of the Pascal generation.
pub const PASCAL: &str = "titan_x_pascal";
/// The profile of the Titan X of the Maxwell generation.
pub const MAXWELL: &str = "titan_x_maxwell";
/// The numbers of GPUs that the paper used; four are two of each generation.
pub const GPU_COUNTS: [u64; 3] = [1, 2, 4];
/// The four networks of the paper, by their names in the profiles.
pub const NETWORKS: [&str; 4] = ["resnet_gait", "cnn2d", "caffenet", "resnet_im"];
/// The batch sizes of the paper.
pub const BATCHES: [u64; 3] = [64, 128, 256];
/// The number of items of a run, which gives enough iterations to warm up the GPU.
pub const ITEMS: u64 = 300 * 128;

/// The time in seconds and the energy in joules of one step (forward or backward) of a batch.
#[derive(Clone, Copy)]
pub struct Step {
    pub time: f64,
    pub energy: f64,
}

/// The forward and backward step of a batch, measured on one GPU of a simulated job.
pub struct JobMeasurement {
    pub gpu: &'static str,
    pub network: &'static str,
    pub gpus: u64,
    pub batch: u64,
    pub forward: Step,
    pub backward: Step,
}

impl JobMeasurement {
    /// The steps as the paper defines them: the time is that of the slowest GPU, the energy that of the measured one.
    /// Waiting for slower GPUs and the exchange of gradients are part of the backward step. `time` and `energy` are
    /// those of a phase of a batch.
    fn new(
        (gpu, network, gpus, batch): (&'static str, &'static str, u64, u64),
        time: impl Fn(&str) -> f64,
        energy: impl Fn(&str) -> f64,
    ) -> Self {
        Self {
            gpu,
            network,
            gpus,
            batch,
            forward: Step {
                time: time("forward"),
                energy: energy("forward"),
            },
            backward: Step {
                time: time("backward") + time("exchange"),
                energy: energy("backward") + energy("wait") + energy("exchange"),
            },
        }
    }

    /// Measures a job of a sweep on the GPU with the index `device`.
    fn from_costs(
        costs: &BatchCosts,
        device: usize,
        (gpu, network, gpus): (&'static str, &'static str, u64),
    ) -> Self {
        let time = |name: &str| costs.phase(name).map_or(0.0, |phase| phase.time.get());
        let energy = |name: &str| {
            let own = costs
                .phase(name)
                .and_then(|phase| phase.by_device.get(device));
            own.and_then(|one| one.energy)
                .map_or(0.0, |energy| energy.get())
        };
        Self::new((gpu, network, gpus, costs.batch), time, energy)
    }

    /// Simulates a job without the noise of runs; `None` if the batch does not fit into memory.
    pub fn exact(
        profiles: &Profiles,
        (gpu, network, gpus, batch): (&'static str, &'static str, u64, u64),
    ) -> Result<Option<Self>, PapersError> {
        let other = if gpu == PASCAL { MAXWELL } else { PASCAL };
        let names = match gpus {
            4 => vec![gpu, gpu, other, other],
            _ => vec![gpu; gpus as usize],
        };
        let name = format!("{network}@{STUDY}");
        let variant = Variant::default();
        let case = profiles.case(&names, Some(STUDY), &name, &variant, EnergyOf::JobGpus)?;
        if !case.fits(batch.div_ceil(gpus)) {
            return Ok(None);
        }
        let case = case.items(ITEMS);
        let iterations = ITEMS as f64 / batch as f64;
        let ranks = case.ranks(Settings::default(), batch, gpus)?;
        let phase = |rank: &Outcome, name: &str| {
            let found = rank.phases.iter().find(|phase| phase.name == name);
            let found = found.map(|phase| (phase.time.get(), phase.energy.get()));
            let (time, energy) = found.unwrap_or_default();
            (time / iterations, energy / iterations)
        };
        let time = |name: &str| {
            ranks
                .iter()
                .map(|rank| phase(rank, name).0)
                .fold(0.0, f64::max)
        };
        let energy = |name: &str| phase(&ranks[0], name).1;
        Ok(Some(Self::new((gpu, network, gpus, batch), time, energy)))
    }

    /// The time of both steps in seconds.
    pub fn time(&self) -> f64 {
        self.forward.time + self.backward.time
    }

    /// The energy of both steps in joules, on the measured GPU.
    pub fn energy(&self) -> f64 {
        self.forward.energy + self.backward.energy
    }
}

/// Sweeps the batch sizes of a network on some GPUs.
fn sweep(runner: &mut SweepRunner, gpus: &str, network: &str) -> Result<Study, PapersError> {
    let batches = AxisText("64,128,256".to_owned());
    runner.sweep(Definition {
        node: Some(STUDY.to_owned()),
        items: Some(ITEMS),
        repeat: Some(3),
        axis: [(BATCH_PARAMETER.to_owned(), batches)].into(),
        ..Definition::simulated(gpus, &format!("{network}@{STUDY}"))
    })
}

/// Runs all jobs of the paper. Batches that do not fit into memory are missing.
pub fn run_jobs(runner: &mut SweepRunner) -> Result<Vec<JobMeasurement>, PapersError> {
    let mut measured = Vec::new();
    for network in NETWORKS {
        let like = [(PASCAL, 1), (PASCAL, 2), (MAXWELL, 1), (MAXWELL, 2)];
        for (gpu, gpus) in like {
            let study = sweep(runner, &format!("{gpu}:{gpus}"), network)?;
            let costs = study
                .points
                .iter()
                .filter_map(|point| study.batch_costs(point));
            measured.extend(
                costs.map(|costs| JobMeasurement::from_costs(&costs, 0, (gpu, network, gpus))),
            );
        }
        // The paper's tables for four GPUs are of the same run, measured on a GPU of either generation.
        let study = sweep(runner, &format!("{PASCAL}:2,{MAXWELL}:2"), network)?;
        for (gpu, device) in [(PASCAL, 0), (MAXWELL, 2)] {
            let costs = study
                .points
                .iter()
                .filter_map(|point| study.batch_costs(point));
            measured.extend(
                costs.map(|costs| JobMeasurement::from_costs(&costs, device, (gpu, network, 4))),
            );
        }
    }
    Ok(measured)
}

/// Simulates all jobs of the paper without the noise of runs.
pub fn exact_jobs(profiles: &Profiles) -> Result<Vec<JobMeasurement>, PapersError> {
    let mut measured = Vec::new();
    for gpu in [PASCAL, MAXWELL] {
        for network in NETWORKS {
            for gpus in GPU_COUNTS {
                for batch in BATCHES {
                    measured.extend(JobMeasurement::exact(
                        profiles,
                        (gpu, network, gpus, batch),
                    )?);
                }
            }
        }
    }
    Ok(measured)
}

/// Finds the measurement of a job; `None` if the job did not fit into memory.
pub fn find<'a>(
    measured: &'a [JobMeasurement],
    gpu: &str,
    network: &str,
    gpus: u64,
    batch: u64,
) -> Option<&'a JobMeasurement> {
    measured.iter().find(|one| {
        one.gpu == gpu && one.network == network && one.gpus == gpus && one.batch == batch
    })
}

/// The energy in joules of a batch on all GPUs of a job: one GPU is measured and multiplied, and of four GPUs one of each
/// generation (section 6.3).
pub fn energy_of_all(
    measured: &[JobMeasurement],
    gpu: &str,
    network: &str,
    gpus: u64,
    batch: u64,
) -> Option<f64> {
    let of = |gpu: &str| Some(find(measured, gpu, network, gpus, batch)?.energy());
    match gpus {
        4 => Some(2.0 * (of(PASCAL)? + of(MAXWELL)?)),
        _ => Some(gpus as f64 * of(gpu)?),
    }
}
