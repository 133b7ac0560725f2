//! `hold` in virtual time: the program, the GPU and its sensor are simulated; the control algorithm is the same as on
//! real GPUs.

mod conditions;
mod gpus;
pub(crate) mod load;
mod outcome;
mod queue;
mod sensor;
mod server;

use std::collections::{HashMap, VecDeque};

use sweetspot_control::hold::{
    CapDivision, CompletedBatch, HoldActions, HoldConfig, HoldEvent, HoldSetting, HoldStatistics,
    HoldSummary, Holder, PowerReading,
};
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_sim::{Load, RequestQueue};
use sweetspot_stats::Seed;

use crate::SimulationError;
pub use conditions::{CapsOfGpus, Conditions, Disturbance, Sensor};
use gpus::RunningGpu;
use load::scale_load;
pub use outcome::{HoldOutcome, HoldSample};
pub use server::SimulatedServer;

/// The time between two power readings, in seconds.
const READING_PERIOD: f64 = 0.02;
/// The time of which an instantaneous sensor shows the mean, in seconds.
const INSTANT_WINDOW: f64 = 0.01;
/// The number of power readings that one sample of the outcome averages.
const READINGS_PER_SAMPLE: u64 = 10;
/// The relative standard deviation of the work from batch to batch, because inputs differ.
const BATCH_VARIATION: f64 = 0.01;

/// A simulated server, the control algorithm that controls it, and the present state of both.
struct HoldSimulation<'a> {
    server: &'a SimulatedServer,
    conditions: &'a Conditions,
    seed: Seed,
    holder: Holder,
    statistics: HoldStatistics,
    gpus: Vec<RunningGpu<'a>>,
    /// Divides the total power cap among several GPUs; `None` if their caps are fixed or there is one GPU.
    division: Option<CapDivision>,
    setting: HoldSetting,
    now: f64,
    /// The loads of a batch on each GPU, by batch size; `None` if the batch does not fit into memory.
    iterations: HashMap<u64, Option<Vec<Vec<Load>>>>,
    heavier: f64,
    /// The true energy of all complete readings, in joules.
    energy: f64,
    reading: CurrentReading,
    /// The recent readings in seconds and watts: those that an averaging sensor needs, or those that a buffer has not
    /// delivered yet.
    readings: VecDeque<(f64, f64)>,
    spike: Option<f64>,
    silent: bool,
    script: VecDeque<(f64, Disturbance)>,
    requests: Option<RequestQueue>,
    outcome: HoldOutcome,
}

/// The power reading that is in progress.
#[derive(Clone, Copy, Default)]
struct CurrentReading {
    number: u64,
    energy: f64,
    /// The part of the energy before the time of which an instantaneous sensor shows the mean.
    energy_before_window: f64,
    /// The sum of the power readings since the last sample, in watts.
    sum: f64,
}

impl<'a> HoldSimulation<'a> {
    /// Creates the simulation at time zero, with the control algorithm's first setting.
    fn new(
        server: &'a SimulatedServer,
        config: HoldConfig,
        conditions: &'a Conditions,
    ) -> Result<Self, SimulationError> {
        let seed = Seed::new(conditions.seed);
        let mut statistics = HoldStatistics::new(config.cap, config.cap_on);
        statistics.start(Seconds::ZERO);
        let mut config = config;
        config.is_balancing = server.is_balancing(&conditions.caps_of_gpus);
        let holder = Holder::new(config)?;
        let setting = holder.setting();
        let script = conditions.script.iter();
        let mut script: Vec<(f64, Disturbance)> =
            script.map(|(at, what)| (at.get(), *what)).collect();
        script.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut simulation = Self {
            gpus: server.running_gpus(seed),
            division: server.division(&setting, &conditions.caps_of_gpus),
            seed,
            statistics,
            server,
            conditions,
            now: 0.0,
            iterations: HashMap::new(),
            heavier: 1.0,
            energy: 0.0,
            reading: CurrentReading::default(),
            readings: VecDeque::new(),
            spike: None,
            silent: false,
            script: script.into(),
            requests: match &conditions.arrivals {
                Some(arrivals) => RequestQueue::new(arrivals, conditions.seed)?,
                None => None,
            },
            outcome: HoldOutcome {
                summary: HoldSummary::default(),
                notices: Vec::new(),
                changes: Vec::new(),
                windows: 0,
                first: setting,
                unused: None,
                last: setting,
                samples: Vec::new(),
                readings: Vec::new(),
                latencies: Vec::new(),
                energy_of_gpus: Vec::new(),
                caps_of_gpus: Vec::new(),
            },
            holder,
            setting,
        };
        simulation.set_gpus();
        Ok(simulation)
    }

    /// Runs batches until the simulated time is over.
    fn run(mut self) -> Result<HoldOutcome, SimulationError> {
        let end = self.conditions.time.get();
        let mut number = 0;
        while self.now < end {
            if !self.await_request(end) {
                break;
            }
            let wanted = self.setting.batch;
            let items = match &self.requests {
                Some(requests) => wanted.min(requests.waiting()),
                None => wanted,
            };
            if !self.fits(items)? {
                self.send(HoldEvent::OutOfMemory { size: items });
                if self.setting.batch >= wanted {
                    break;
                }
                continue;
            }
            let begun = Seconds::new(self.now);
            let oldest = match &mut self.requests {
                Some(requests) => requests.take(items).first().copied(),
                None => None,
            };
            self.run_batch(items, number);
            number += 1;
            let now = Seconds::new(self.now);
            let done = CompletedBatch {
                size: wanted,
                items,
                duration: now - begun,
                latency: oldest.map(|came| now - came),
            };
            let latency = done.latency.unwrap_or(done.duration);
            self.outcome.latencies.push((now, latency, items));
            self.statistics.record_batch(now, &done);
            self.send(HoldEvent::BatchCompleted(done));
        }
        self.outcome.summary = self.summarise();
        let settled = self.outcome.summary;
        let settled = settled.settle_time.and(settled.settled_power);
        self.outcome.unused = settled.and_then(|power| self.holder.unused_power(power));
        self.outcome.windows = self.holder.window_count();
        self.outcome.last = self.setting;
        let energies = self.gpus.iter().map(|gpu| Joules::new(gpu.energy));
        self.outcome.energy_of_gpus = energies.collect();
        Ok(self.outcome)
    }

    /// The statistics of the run. Their energy is the true one, because an instantaneous sensor shows only half of the time.
    fn summarise(&self) -> HoldSummary {
        let summary = self.statistics.summary();
        let energy = Joules::new(self.energy);
        let per_item = summary.energy_per_item;
        HoldSummary {
            energy,
            energy_per_item: per_item.map(|_| energy / summary.items as f64),
            ..summary
        }
    }

    /// Whether a batch of this size fits into memory.
    fn fits(&mut self, size: u64) -> Result<bool, SimulationError> {
        if !self.iterations.contains_key(&size) {
            let variations: Vec<_> = self.gpus.iter().map(|gpu| gpu.variation).collect();
            let loads = self.server.iteration(size, &variations)?;
            self.iterations.insert(size, loads);
        }
        Ok(matches!(self.iterations.get(&size), Some(Some(_))))
    }

    /// Simulates the batch with this number and size.
    fn run_batch(&mut self, size: u64, number: u64) {
        let deviation = 2.0 * self.seed.label("batch").number(number).uniform() - 1.0;
        let jitter = 1.0 + BATCH_VARIATION * deviation;
        let mut loads = self.iterations.get(&size).cloned().flatten();
        for load in loads.iter_mut().flatten().flatten() {
            *load = scale_load(load, jitter, self.heavier);
        }
        self.run_loads(&loads.unwrap_or_default());
    }

    /// Ends a power reading: records it, passes it to the sensor and applies the disturbances that are due.
    fn end_reading(&mut self) {
        let to = (self.reading.number + 1) as f64 * READING_PERIOD;
        let power = self.reading.energy / READING_PERIOD;
        let in_window = self.reading.energy - self.reading.energy_before_window;
        let shown = match self.conditions.sensor {
            Sensor::Instant => in_window / INSTANT_WINDOW,
            Sensor::Averaged | Sensor::Buffered => power,
        };
        self.energy += self.reading.energy;
        self.reading = CurrentReading {
            number: self.reading.number + 1,
            energy: 0.0,
            energy_before_window: 0.0,
            sum: self.reading.sum + power,
        };
        self.statistics
            .record_power(&power_reading(to - READING_PERIOD, to, shown));
        self.balance_gpus(to);
        let number = self.reading.number;
        if self.conditions.keep_samples && number.is_multiple_of(READINGS_PER_SAMPLE) {
            let sum = std::mem::take(&mut self.reading.sum);
            self.outcome.samples.push(HoldSample {
                at: Seconds::new(to),
                power: Watts::new(sum / READINGS_PER_SAMPLE as f64),
                batch: self.setting.batch,
                core_clock: self.setting.core_clock,
            });
        }
        self.readings.push_back((to, power));
        match self.conditions.sensor {
            Sensor::Averaged => self.read_average(number),
            Sensor::Buffered => self.read_buffer(number),
            Sensor::Instant => self.read_instant(to, shown),
        }
        while self.script.front().is_some_and(|(at, _)| *at <= to) {
            if let Some((_, what)) = self.script.pop_front() {
                self.disturb(what);
            }
        }
        if number.is_multiple_of(5) {
            self.send(HoldEvent::Tick);
        }
        self.send_queue(Seconds::new(to));
    }

    /// Applies a disturbance of the simulated run, such as a new power cap.
    fn disturb(&mut self, what: Disturbance) {
        let now = Seconds::new(self.now);
        match what {
            Disturbance::Cap(cap) => {
                self.statistics.record_cap(now, cap);
                self.send(HoldEvent::CapChanged(cap));
            }
            Disturbance::Heavier(factor) => {
                self.heavier = factor.get();
                self.statistics.restart_settling(now);
            }
            Disturbance::FalseSpike(power) => {
                self.spike = Some(power.get());
                self.statistics.restart_settling(now);
            }
            Disturbance::Silence(silent) => {
                self.silent = silent;
                self.statistics.restart_settling(now);
            }
        }
    }

    /// Passes an event to the control algorithm and applies its actions.
    fn send(&mut self, event: HoldEvent) {
        if let (HoldEvent::PowerRead(reading), true) = (event, self.conditions.keep_readings) {
            self.outcome.readings.push(reading);
        }
        let now = Seconds::new(self.now);
        let actions = self.holder.step(now, event);
        self.statistics.set_window_count(self.holder.window_count());
        self.act(now, &actions);
    }

    /// Records the control algorithm's notice and applies its new setting.
    fn act(&mut self, now: Seconds, actions: &HoldActions) {
        if let Some(notice) = actions.notice {
            self.outcome.notices.push((now, notice));
        }
        if actions.has_changes() {
            self.setting = self.holder.setting();
            self.set_gpus();
            self.statistics.record_change(now);
            let windows = self.holder.window_count();
            self.outcome.changes.push((now, windows, self.setting));
        }
    }
}

/// A power reading over a time span, in seconds and watts.
fn power_reading(from: f64, to: f64, power: f64) -> PowerReading {
    PowerReading {
        from: Seconds::new(from),
        to: Seconds::new(to),
        power: Watts::new(power),
    }
}
