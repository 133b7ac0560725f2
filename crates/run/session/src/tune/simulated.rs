//! The pump of virtual time: a job on simulated GPUs, iteration by iteration, as a tuner sees it.

use std::collections::VecDeque;
use std::sync::Arc;

use sweetspot_control::tune::{JobLength, TuneAction, TuneEvent, Tuner};
use sweetspot_device::{Actuator, Knob, Settings, VirtualClock};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};
use sweetspot_sim::{GpuProfile, Job, Order, SimulatedGpu, Sink, Stretch, Variation, Workload};
use sweetspot_stats::Seed;
use sweetspot_study::Configuration;

use super::space::Places;
use super::{ChoiceStore, TuneRequest, TunedJob, fingerprint, recall, remember, terms};
use crate::SessionError;
use crate::observer::Observer;
use crate::simulated_host::usual_all_reduce;
use crate::virtual_time::{Bench, Setup, of_job};

/// A job on simulated GPUs: workloads on the same GPUs, one after the other.
pub struct SimulatedJob {
    benches: Vec<Bench>,
    batch: Option<u64>,
    /// Standard deviation of a second of work and of its switching power.
    pub noise: Ratio,
}

/// Iterations differ by some percent, so that seconds differ by one.
const NOISE: Ratio = Ratio::new(0.01);
/// The energy counter's beat.
const TICK: f64 = 0.1;
/// A part of a job after which a setting can take effect.
const PART: f64 = 0.1;

impl SimulatedJob {
    /// Puts the workloads, with commas between, on the GPUs.
    pub fn new(setup: &Setup, batch: Option<u64>) -> Result<Self, SessionError> {
        let of_each = setup.network.split(',').map(|network| {
            Bench::new(&Setup {
                network: network.trim().to_owned(),
                ..setup.clone()
            })
        });
        let benches: Vec<Bench> = of_each.collect::<Result<_, _>>()?;
        let job = Self {
            benches,
            batch,
            noise: NOISE,
        };
        for bench in &job.benches {
            job.part(bench, None, Variation::NONE)?;
        }
        Ok(job)
    }

    /// Puts workloads on a GPU, each to take about so long at its defaults.
    pub fn of(
        gpu: (String, GpuProfile),
        workloads: Vec<Workload>,
        time: Seconds,
    ) -> Result<Self, SessionError> {
        let mut benches = Vec::new();
        for workload in workloads {
            let mut bench = Bench::of(vec![gpu.clone()], None, workload)?;
            bench.items = bench.workload.profile.batch * 10;
            let (took, _, _) = at(&bench, None, Settings::default())?;
            let items = bench.items as f64 * (time / took).get();
            let batches = (items / bench.workload.profile.batch as f64).ceil();
            bench.items = batches as u64 * bench.workload.profile.batch;
            benches.push(bench);
        }
        Ok(Self {
            benches,
            batch: None,
            noise: NOISE,
        })
    }

    /// Time, energy and items of one of its workloads at a setting from start to end, without noise.
    pub fn outcome_at(
        &self,
        workload: usize,
        settings: Settings,
    ) -> Result<(Seconds, Joules, f64), SessionError> {
        at(&self.benches[workload], self.batch, settings)
    }

    /// The GPUs, described like real ones.
    pub fn descriptors(&self) -> Vec<sweetspot_device::Descriptor> {
        self.benches[0].descriptors()
    }

    fn name(&self) -> String {
        let names = self.benches.iter().map(|bench| bench.workload.name.clone());
        names.collect::<Vec<_>>().join(", ")
    }

    fn items(&self) -> f64 {
        self.benches.iter().map(|bench| bench.items as f64).sum()
    }

    /// So many iterations of a workload on each GPU; its startup too, where nothing is said.
    fn part(
        &self,
        bench: &Bench,
        iterations: Option<u64>,
        variation: Variation,
    ) -> Result<Vec<Job>, SessionError> {
        let count = bench.gpus.len();
        let profile = &bench.workload.profile;
        let batch = self.batch.unwrap_or(profile.batch);
        let whole = Order {
            batch: Some(batch),
            items: Some(bench.items),
        };
        let share = whole.share(profile, count);
        let jobs = bench.gpus.iter().map(|gpu| {
            let order = match iterations {
                Some(iterations) => Order {
                    items: share.batch.map(|batch| batch * iterations),
                    ..share
                },
                None => share,
            };
            let job = Job::new(profile, &gpu.work, &gpu.profile, order, variation)
                .map_err(|problem| of_job(&bench.workload, problem))?;
            Ok(match iterations {
                Some(_) => job.without_startup(),
                None => job,
            })
        });
        jobs.collect()
    }
}

fn at(
    bench: &Bench,
    batch: Option<u64>,
    settings: Settings,
) -> Result<(Seconds, Joules, f64), SessionError> {
    let mut configuration = Configuration {
        gpus: bench.gpus.len() as u64,
        ..Configuration::default()
    }
    .with_settings(settings);
    if let Some(batch) = batch {
        configuration = configuration.with_batch(batch);
    }
    let together = bench.together(&configuration, None, &mut ())?;
    let together = together.map_err(|failure| SessionError::NothingRan {
        study: bench.workload.name.clone(),
        reason: failure.reason,
    })?;
    let energy = together.ranks.iter().map(|rank| rank.energy).sum();
    let items = together.ranks.iter().map(|rank| rank.items as f64).sum();
    Ok((together.time, energy, items))
}

pub fn tune(
    request: &TuneRequest,
    job: &SimulatedJob,
    store: Option<&ChoiceStore>,
    observer: &mut dyn Observer,
) -> Result<TunedJob, SessionError> {
    let devices = job.descriptors();
    let places = Places::of(&devices, request.knob)?;
    let print = fingerprint(request, &devices, &job.name(), true);
    let remembered = recall(store, &print, observer);
    let mut terms = terms(request, &devices, &places, remembered.as_ref());
    terms.job = JobLength::Items(job.items());
    let clock = Arc::new(VirtualClock::default());
    let gpus = job.benches[0].gpus.iter().enumerate();
    let gpus: Vec<SimulatedGpu> = gpus
        .map(|(index, gpu)| SimulatedGpu::new(index as u64, gpu.profile.clone(), clock.clone()))
        .collect();
    let mut pump = Pump {
        meter: Meter::new(gpus.len()),
        gpus,
        clock,
        tuner: Tuner::new(terms),
        places: &places,
        observer,
        now: Seconds::ZERO,
        items: 0.0,
        power: Vec::new(),
        last: (Seconds::ZERO, Joules::ZERO),
    };
    let mut begins = Vec::new();
    for (number, bench) in job.benches.iter().enumerate() {
        let seed = Seed::new(request.seed).label("tune").number(number as u64);
        begins.push(pump.now);
        pump.workload(job, bench, seed)?;
    }
    let (now, items, energy) = (pump.now, pump.items, pump.meter.total());
    pump.tell(TuneEvent::Ended);
    let tuned = TunedJob {
        workload: job.name(),
        devices,
        knob: request.knob,
        question: request.question.clone(),
        strategy: request.strategy,
        reference: places.space.reference(),
        tuned: pump.tuner.finish(),
        time: now,
        energy: Some(energy),
        items: Some(items),
        begins,
        power: pump.power,
        ended: None,
        restored: true,
        settings: places.settings.clone(),
        labels: places.labels.clone(),
    };
    remember(store, &print, &tuned, observer);
    Ok(tuned)
}

struct Pump<'a> {
    gpus: Vec<SimulatedGpu>,
    clock: Arc<VirtualClock>,
    meter: Meter,
    tuner: Tuner,
    places: &'a Places,
    observer: &'a mut dyn Observer,
    now: Seconds,
    items: f64,
    power: Vec<(Seconds, Watts)>,
    last: (Seconds, Joules),
}

impl Pump<'_> {
    /// A workload from its first iteration to its last.
    fn workload(
        &mut self,
        job: &SimulatedJob,
        bench: &Bench,
        seed: Seed,
    ) -> Result<(), SessionError> {
        let all_reduce = match &bench.node {
            Some(node) => node.all_reduce.clone(),
            None => usual_all_reduce(),
        };
        let exchange = all_reduce.exchange(self.gpus.len(), bench.workload.profile.gradients);
        let whole = job.part(bench, None, Variation::NONE)?;
        let (mut left, mut iterations, mut length) = (whole[0].iterations().1, 1, PART);
        let batch: u64 = whole.iter().map(|job| job.batch).sum();
        let mut number = 0;
        while left > 0 {
            iterations = iterations.clamp(1, left);
            let noise = job.noise * (1.0 / length.max(1e-3).sqrt());
            let variation = Variation::draw(noise, seed.number(number));
            let jobs = job.part(bench, Some(iterations), variation)?;
            let together =
                SimulatedGpu::run_together(&mut self.gpus, &jobs, exchange, &mut self.meter)
                    .map_err(|problem| SessionError::Setting {
                        device: bench.gpus[0].profile.name.clone(),
                        problem: problem.to_string(),
                    })?;
            self.clock.advance(together.time);
            self.items += (batch * iterations) as f64;
            self.pass(together.time);
            left -= iterations;
            number += 1;
            // A setting takes effect between two parts.
            length = together.time.get();
            let each = length / iterations as f64;
            iterations = (PART / each) as u64;
        }
        Ok(())
    }

    /// Tells what came to pass in a part of the job, in order.
    fn pass(&mut self, time: Seconds) {
        let end = self.now + time;
        for (at, total) in self.meter.ticks() {
            let (before, was) = self.last;
            if at > before {
                self.power.push((at, (total - was) / (at - before)));
            }
            self.last = (at, total);
            self.now = at.max(self.now);
            self.tell(TuneEvent::Energy { at, total });
        }
        self.now = end;
        let total = self.items;
        self.tell(TuneEvent::Progress { at: end, total });
    }

    fn tell(&mut self, event: TuneEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for action in self.tuner.step(self.now, event) {
                match action {
                    TuneAction::Set(place) => events.push_back(self.set(place)),
                    TuneAction::Notify(notice) => {
                        let now = self.now;
                        self.observer.note(&format!("{now:.0}: {notice}"));
                    }
                    TuneAction::ReportState(_) => {}
                }
            }
        }
    }

    fn set(&mut self, place: usize) -> TuneEvent {
        let settings = &self.places.settings[place];
        for gpu in &mut self.gpus {
            let freed = match settings.core_clock {
                None => gpu.reset(Knob::CoreClock),
                Some(_) => Ok(()),
            };
            if let Err(problem) = freed.and_then(|()| gpu.apply(settings).map(drop)) {
                let why = problem.to_string();
                return TuneEvent::Rejected { place, reason: why };
            }
        }
        TuneEvent::Applied(place)
    }
}

/// Energy as a counter shows it, of all GPUs together.
struct Meter {
    ranks: Vec<Counted>,
    taken: u64,
}

#[derive(Clone, Default)]
struct Counted {
    time: f64,
    energy: f64,
    ticks: u64,
    shown: VecDeque<f64>,
}

impl Meter {
    fn new(ranks: usize) -> Self {
        Self {
            ranks: vec![Counted::default(); ranks],
            taken: 0,
        }
    }

    fn total(&self) -> Joules {
        Joules::new(self.ranks.iter().map(|rank| rank.energy).sum())
    }

    /// Those that every counter has reached.
    fn ticks(&mut self) -> Vec<(Seconds, Joules)> {
        let mut ticks = Vec::new();
        while self.ranks.iter().all(|rank| !rank.shown.is_empty()) {
            let shown = self
                .ranks
                .iter_mut()
                .filter_map(|rank| rank.shown.pop_front());
            let total = Joules::new(shown.sum());
            self.taken += 1;
            ticks.push((Seconds::new(self.taken as f64 * TICK), total));
        }
        ticks
    }
}

impl Sink for Meter {
    fn stretch(&mut self, rank: usize, stretch: &Stretch) {
        let Some(counted) = self.ranks.get_mut(rank) else {
            return;
        };
        let (time, power) = (stretch.time.get(), stretch.power.get());
        loop {
            let tick = (counted.ticks + 1) as f64 * TICK;
            if tick > counted.time + time {
                break;
            }
            counted.ticks += 1;
            let energy = counted.energy + power * (tick - counted.time);
            counted.shown.push_back(energy);
        }
        counted.time += time;
        counted.energy += power * time;
    }
}
