//! A holder in virtual time: the program, the GPU and its sensor are simulated, the holder is the real one.

mod conditions;
mod held;
mod queue;
mod sensor;

use std::collections::{HashMap, VecDeque};

use sweetspot_control::hold::{
    CompletedBatch, HoldActions, HoldConfig, HoldEvent, HoldSetting, HoldStatistics, HoldSummary,
    Holder, PowerReading,
};
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{
    Chip, GpuProfile, Job, JobError, Limits, Load, Order, Phase, State, Variant, Variation, Work,
    Workload, find_gpu, find_workload,
};
use sweetspot_stats::Seed;

use crate::SessionError;
use crate::sim_workload::Requests;
use crate::virtual_time::{of_job, work_on};
pub use conditions::{Conditions, Disturbance, Sensor};
pub use held::{HoldOutcome, PowerSample};

/// How finely power is seen.
const BIN: f64 = 0.02;
/// Bins of a sighting.
const SIGHTING: u64 = 10;
/// Batches differ by this much in their work, as their inputs do.
const JITTER: f64 = 0.01;

/// A simulated GPU and a workload on it.
#[derive(Clone, Debug)]
pub struct Rig {
    gpu: GpuProfile,
    chip: Chip,
    workload: Workload,
    work: Work,
}

impl Rig {
    /// Both found by name or path.
    pub fn new(gpu: &str, network: &str, variant: &Variant) -> Result<Self, SessionError> {
        let (name, gpu) = find_gpu(gpu)?;
        let workload = find_workload(network, gpu.study.as_deref(), variant)?;
        let work = work_on(&workload, &name, &gpu)?;
        Ok(Self {
            chip: Chip::new(&gpu),
            gpu,
            workload,
            work,
        })
    }

    /// Runs the workload under a holder.
    pub fn hold(
        &self,
        terms: HoldConfig,
        conditions: &Conditions,
    ) -> Result<HoldOutcome, SessionError> {
        Pump::new(self, terms, conditions)?.run()
    }

    /// An iteration with this batch size; nothing where it does not fit.
    fn iteration(
        &self,
        batch: u64,
        variation: Variation,
    ) -> Result<Option<Vec<Phase>>, SessionError> {
        let order = Order {
            batch: Some(batch),
            items: Some(batch),
        };
        let workload = &self.workload.profile;
        match Job::new(workload, &self.work, &self.gpu, order, variation) {
            Ok(job) => Ok(Some(job.iterations().0.to_vec())),
            Err(JobError::OutOfMemory { .. }) => Ok(None),
            Err(problem) => Err(of_job(&self.workload, problem)),
        }
    }

    fn limits(&self, setting: &HoldSetting) -> Limits {
        let cap = setting.power_cap.unwrap_or(self.gpu.cap.default);
        self.chip
            .limits(self.gpu.enforced(cap), setting.core_clock, None)
    }
}

struct Pump<'a> {
    rig: &'a Rig,
    conditions: &'a Conditions,
    seed: Seed,
    variation: Variation,
    holder: Holder,
    account: HoldStatistics,
    state: State,
    limits: Limits,
    setting: HoldSetting,
    now: f64,
    iterations: HashMap<u64, Option<Vec<Phase>>>,
    heavier: f64,
    bin: Bin,
    /// The bins of the last second, for an averaging sensor; those not yet handed over, for a buffer.
    bins: VecDeque<(f64, f64)>,
    spike: Option<f64>,
    silent: bool,
    script: VecDeque<(f64, Disturbance)>,
    requests: Option<Requests>,
    held: HoldOutcome,
}

/// The bin that fills.
#[derive(Clone, Copy, Default)]
struct Bin {
    number: u64,
    energy: f64,
    /// Of those since the last sighting.
    sum: f64,
}

impl<'a> Pump<'a> {
    fn new(
        rig: &'a Rig,
        terms: HoldConfig,
        conditions: &'a Conditions,
    ) -> Result<Self, SessionError> {
        let seed = Seed::new(conditions.seed);
        let mut account = HoldStatistics::new(terms.cap, terms.averaging_time);
        account.start(Seconds::ZERO);
        let holder = Holder::new(terms)?;
        let setting = holder.setting();
        let script = conditions.script.iter();
        let mut script: Vec<(f64, Disturbance)> =
            script.map(|(at, what)| (at.get(), *what)).collect();
        script.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(Self {
            variation: Variation::draw(rig.gpu.noise, seed),
            seed,
            account,
            state: rig.chip.rest(),
            limits: rig.limits(&setting),
            rig,
            conditions,
            now: 0.0,
            iterations: HashMap::new(),
            heavier: 1.0,
            bin: Bin::default(),
            bins: VecDeque::new(),
            spike: None,
            silent: false,
            script: script.into(),
            requests: match &conditions.arrivals {
                Some(arrivals) => Requests::of(arrivals, conditions.seed)
                    .map_err(|problem| SessionError::Definition(problem.to_string()))?,
                None => None,
            },
            held: HoldOutcome {
                summary: HoldSummary::default(),
                notices: Vec::new(),
                changes: Vec::new(),
                windows: 0,
                last: setting,
                samples: Vec::new(),
                latencies: Vec::new(),
            },
            holder,
            setting,
        })
    }

    fn run(mut self) -> Result<HoldOutcome, SessionError> {
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
            if !self.prepare(items)? {
                self.tell(HoldEvent::OutOfMemory { size: items });
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
            self.go_through(items, number);
            number += 1;
            let now = Seconds::new(self.now);
            let done = CompletedBatch {
                size: wanted,
                items,
                duration: now - begun,
                latency: oldest.map(|came| now - came),
            };
            let latency = done.latency.unwrap_or(done.duration);
            self.held.latencies.push((now, latency, items));
            self.account.record_batch(now, &done);
            self.tell(HoldEvent::BatchCompleted(done));
        }
        self.held.summary = self.account.summary();
        self.held.windows = self.holder.window_count();
        self.held.last = self.setting;
        Ok(self.held)
    }

    /// Whether a batch of this size fits.
    fn prepare(&mut self, size: u64) -> Result<bool, SessionError> {
        if !self.iterations.contains_key(&size) {
            let phases = self.rig.iteration(size, self.variation)?;
            self.iterations.insert(size, phases);
        }
        Ok(matches!(self.iterations.get(&size), Some(Some(_))))
    }

    fn go_through(&mut self, size: u64, number: u64) {
        let off = 2.0 * self.seed.label("batch").number(number).uniform() - 1.0;
        let jitter = 1.0 + JITTER * off;
        let phases = self.iterations.get(&size).cloned().flatten();
        for phase in phases.unwrap_or_default() {
            self.pass(&scaled(&phase.load, jitter, self.heavier));
        }
    }

    /// Goes on until the load is done.
    fn pass(&mut self, load: &Load) {
        let mut left = Ratio::new(1.0);
        while left > Ratio::ZERO {
            let next = (self.bin.number + 1) as f64 * BIN;
            let at_most = Seconds::new((next - self.now).max(1e-9));
            let state = &mut self.state;
            let step = self.rig.chip.step(state, &self.limits, load, left, at_most);
            left -= step.done;
            self.now += step.time.get();
            self.bin.energy += step.power.get() * step.time.get();
            if self.now >= next - 1e-9 {
                self.end_bin();
            }
        }
    }

    fn end_bin(&mut self) {
        let to = (self.bin.number + 1) as f64 * BIN;
        let power = self.bin.energy / BIN;
        self.bin = Bin {
            number: self.bin.number + 1,
            energy: 0.0,
            sum: self.bin.sum + power,
        };
        self.account.record_power(&reading(to - BIN, to, power));
        let number = self.bin.number;
        if self.conditions.keep && number.is_multiple_of(SIGHTING) {
            let sum = std::mem::take(&mut self.bin.sum);
            self.held.samples.push(PowerSample {
                at: Seconds::new(to),
                power: Watts::new(sum / SIGHTING as f64),
                batch: self.setting.batch,
                core_clock: self.setting.core_clock,
            });
        }
        self.bins.push_back((to, power));
        match self.conditions.sensor {
            Sensor::Averaged => self.average(number),
            Sensor::Buffered => self.buffer(number),
        }
        while self.script.front().is_some_and(|(at, _)| *at <= to) {
            if let Some((_, what)) = self.script.pop_front() {
                self.disturb(what);
            }
        }
        if number.is_multiple_of(5) {
            self.tell(HoldEvent::Tick);
        }
        self.tell_queue(Seconds::new(to));
    }

    fn disturb(&mut self, what: Disturbance) {
        let now = Seconds::new(self.now);
        match what {
            Disturbance::Cap(cap) => {
                self.account.record_cap(now, cap);
                self.tell(HoldEvent::CapChanged(cap));
            }
            Disturbance::Heavier(factor) => {
                self.heavier = factor.get();
                self.account.restart_settling(now);
            }
            Disturbance::FalseSpike(power) => {
                self.spike = Some(power.get());
                self.account.restart_settling(now);
            }
            Disturbance::Silence(silent) => {
                self.silent = silent;
                self.account.restart_settling(now);
            }
        }
    }

    fn tell(&mut self, event: HoldEvent) {
        let now = Seconds::new(self.now);
        let actions = self.holder.step(now, event);
        self.account.set_window_count(self.holder.window_count());
        self.act(now, &actions);
    }

    fn act(&mut self, now: Seconds, actions: &HoldActions) {
        if let Some(notice) = actions.notice {
            self.held.notices.push((now, notice));
        }
        if actions.has_changes() {
            self.setting = self.holder.setting();
            self.limits = self.rig.limits(&self.setting);
            self.account.record_change(now);
            let windows = self.holder.window_count();
            self.held.changes.push((now, windows, self.setting));
        }
    }
}

fn reading(from: f64, to: f64, power: f64) -> PowerReading {
    PowerReading {
        from: Seconds::new(from),
        to: Seconds::new(to),
        power: Watts::new(power),
    }
}

/// The same with so many times the work, and for the device so many times that.
fn scaled(load: &Load, factor: f64, heavier: f64) -> Load {
    let device = factor * heavier;
    match *load {
        Load::Waiting { host } => Load::Waiting {
            host: host * factor,
        },
        Load::Kernels {
            launch,
            core,
            memory,
            switching,
            memory_activity,
        } => Load::Kernels {
            launch: launch * factor,
            core: core * device,
            memory: memory * device,
            switching,
            memory_activity,
        },
        other => other,
    }
}
