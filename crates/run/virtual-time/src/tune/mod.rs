//! `tune` in virtual time: a tuner controls a job on simulated GPUs.

mod energy_counter;
mod limit_counters;
mod simulation;

use std::sync::Arc;

use sweetspot_control::tune::{
    EarlierChoice, JobLength, PointTable, TuneEvent, TuneNotice, TuneRequest, TuneSpace, TunedJob,
    Tuner, find_unsupported_criterion,
};
use sweetspot_device::{Actuator, Descriptor, Settings, VirtualClock};
use sweetspot_quantity::{Joules, Ratio, Seconds};
use sweetspot_sim::{GpuProfile, Job, JobRequest, SimulatedGpu, Variation, Workload};
use sweetspot_stats::Seed;
use sweetspot_study::ReferenceFailed;

use crate::{JobSpec, SimulatedJob, SimulationError};
use simulation::TuneSimulation;

/// Workloads that run on the same simulated GPUs, one after the other.
pub struct JobSequence {
    jobs: Vec<SimulatedJob>,
    batch: Option<u64>,
    /// The relative standard deviation of the work and of the switching power from one second to the next.
    pub noise: Ratio,
}

/// The usual noise from one second to the next. Single iterations differ by some percent; averaged over a
/// second, 1 % remains.
const USUAL_NOISE: Ratio = Ratio::new(0.01);

impl JobSequence {
    /// Creates jobs that run one after the other on the same GPUs; there must be at least one.
    pub fn new(specs: &[JobSpec], batch: Option<u64>) -> Result<Self, SimulationError> {
        let jobs = specs.iter().map(SimulatedJob::new);
        let jobs: Vec<SimulatedJob> = jobs.collect::<Result<_, _>>()?;
        if jobs.is_empty() {
            return Err(SimulationError::NoNetwork);
        }
        let sequence = Self {
            jobs,
            batch,
            noise: USUAL_NOISE,
        };
        for job in &sequence.jobs {
            sequence.part(job, None, Variation::NONE)?;
        }
        Ok(sequence)
    }

    /// Creates jobs on one GPU, each of which takes about `time` at the default settings.
    pub fn from_profiles(
        gpu: (String, GpuProfile),
        workloads: Vec<Workload>,
        time: Seconds,
    ) -> Result<Self, SimulationError> {
        Self::on_gpus(vec![gpu], workloads, time)
    }

    /// Creates jobs on these GPUs, each of which takes about `time` at the default settings.
    pub fn on_gpus(
        gpus: Vec<(String, GpuProfile)>,
        workloads: Vec<Workload>,
        time: Seconds,
    ) -> Result<Self, SimulationError> {
        let mut jobs = Vec::new();
        for workload in workloads {
            let mut job = SimulatedJob::from_profiles(gpus.clone(), None, workload)?;
            job.items = job.workload.profile.batch * 10 * gpus.len() as u64;
            let (took, _, _) = outcome(&job, None, &[Settings::default()])?;
            let items = job.items as f64 * (time / took).get();
            let batches = (items / job.workload.profile.batch as f64).ceil();
            job.items = batches as u64 * job.workload.profile.batch;
            jobs.push(job);
        }
        Ok(Self {
            jobs,
            batch: None,
            noise: USUAL_NOISE,
        })
    }

    /// The time, energy and items of one of the workloads at a setting for all GPUs, without noise.
    pub fn outcome_at(
        &self,
        workload: usize,
        settings: Settings,
    ) -> Result<(Seconds, Joules, f64), SimulationError> {
        self.outcome_at_each(workload, &[settings])
    }

    /// The time, energy and items of one of the workloads without noise, if each GPU has a setting of its own.
    pub fn outcome_at_each(
        &self,
        workload: usize,
        settings: &[Settings],
    ) -> Result<(Seconds, Joules, f64), SimulationError> {
        outcome(&self.jobs[workload], self.batch, settings)
    }

    /// The descriptors of the GPUs, as real GPUs have them.
    pub fn descriptors(&self) -> Vec<Descriptor> {
        self.jobs[0].descriptors()
    }

    /// The names of the workloads, as one text.
    fn name(&self) -> String {
        let names = self.jobs.iter().map(|job| job.workload.name.clone());
        names.collect::<Vec<_>>().join(", ")
    }

    /// The number of items of all workloads.
    fn items(&self) -> f64 {
        self.jobs.iter().map(|job| job.items as f64).sum()
    }

    /// A part of a workload as one job per GPU: some iterations, or the whole workload with its startup.
    pub(super) fn part(
        &self,
        job: &SimulatedJob,
        iterations: Option<u64>,
        variation: Variation,
    ) -> Result<Vec<Job>, SimulationError> {
        let count = job.gpus.len();
        let profile = &job.workload.profile;
        let batch = self.batch.unwrap_or(profile.batch);
        let whole = JobRequest {
            batch: Some(batch),
            items: Some(job.items),
        };
        let share = whole.share(profile, count);
        let parts = job.gpus.iter().map(|gpu| {
            let request = match iterations {
                Some(iterations) => JobRequest {
                    items: share.batch.map(|batch| batch * iterations),
                    ..share
                },
                None => share,
            };
            let part = Job::new(profile, &gpu.work, &gpu.profile, request, variation)
                .map_err(|problem| job.workload.cannot_run(problem))?;
            Ok(match iterations {
                Some(_) => part.without_startup(),
                None => part,
            })
        });
        parts.collect()
    }
}

/// The time, energy and items of a job at one setting for all GPUs or one for each, without noise.
fn outcome(
    job: &SimulatedJob,
    batch: Option<u64>,
    settings: &[Settings],
) -> Result<(Seconds, Joules, f64), SimulationError> {
    let each = (0..job.gpus.len()).filter_map(|gpu| settings.get(gpu).or(settings.last()));
    let each: Vec<Settings> = each.copied().collect();
    let together = job.simulate_at(batch, &each, None, &mut ())?;
    let together = together.map_err(|failure| ReferenceFailed {
        study: job.workload.name.clone(),
        reason: failure.reason,
    })?;
    let energy = together.ranks.iter().map(|rank| rank.energy).sum();
    let items = together.ranks.iter().map(|rank| rank.items as f64).sum();
    Ok((together.time, energy, items))
}

/// Tunes a sequence of jobs. `earlier` is what an earlier run of the same jobs chose; `on_notice` receives the tuner's
/// notices and their times.
pub fn tune(
    request: &TuneRequest,
    sequence: &JobSequence,
    earlier: Option<EarlierChoice>,
    on_notice: &mut dyn FnMut(Seconds, &TuneNotice),
) -> Result<TunedJob, SimulationError> {
    if let Some((subject, problem)) = find_unsupported_criterion(&request.criteria) {
        return Err(SimulationError::Criteria { subject, problem });
    }
    let devices = sequence.descriptors();
    let mut space = TuneSpace::new(&devices, request.knob)?;
    let length = JobLength::Items(sequence.items());
    let clock = Arc::new(VirtualClock::default());
    let gpus = sequence.jobs[0].gpus.iter().enumerate();
    let mut gpus: Vec<SimulatedGpu> = gpus
        .map(|(index, gpu)| SimulatedGpu::new(index as u64, gpu.profile.clone(), clock.clone()))
        .collect();
    let reference = &space.of_gpus[space.space.reference()];
    let mut at_reference = gpus.iter_mut().zip(reference);
    if space.clocks.is_some() && at_reference.any(|(gpu, own)| gpu.apply(own).is_err()) {
        space = TuneSpace::without_caps(&devices)?;
    }
    let config = request.tuner_config(&devices, &space, length, earlier);
    let tuner = Tuner::new(config);
    let mut simulation = TuneSimulation::new(gpus, clock, tuner, &space, on_notice);
    let mut begins = Vec::new();
    for (number, job) in sequence.jobs.iter().enumerate() {
        let seed = Seed::new(request.seed).label("tune").number(number as u64);
        begins.push(simulation.now);
        simulation.run_job(sequence, job, seed)?;
    }
    let (now, items) = (simulation.now, simulation.items);
    let energy = simulation.counters.energy.total();
    let energies = simulation.counters.energy.totals();
    simulation.send(TuneEvent::Ended);
    let tuned = simulation.tuner.finish();
    let points = PointTable::new(&space, &tuned);
    Ok(TunedJob {
        workload: sequence.name(),
        devices,
        knob: request.knob,
        criteria: request.criteria.clone(),
        strategy: request.strategy,
        reference: space.space.reference(),
        tuned,
        time: now,
        energy: Some(energy),
        energy_of_gpus: energies.into_iter().map(Some).collect(),
        items: Some(items),
        begins,
        power: simulation.power,
        restored: true,
        scope: request.settings,
        settings: points.settings,
        settings_of_gpus: points.settings_of_gpus,
        labels: points.labels,
    })
}
