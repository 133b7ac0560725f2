//! Simulates GPUs that share a budget.

use std::collections::VecDeque;

use sweetspot_control::budget::{
    BudgetAction, BudgetConfig, BudgetEvent, BudgetNotice, BudgetStatistics, BudgetedDevice,
    Budgeter, GpuReading,
};
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_stats::Seed;

use super::gpu::{BudgetedGpu, SimulatedProgram};

/// The time between two readings, in seconds.
const TICK: f64 = 0.1;
/// The relative standard deviation of a power reading.
const READING_NOISE: f64 = 0.005;
/// The time that a device takes to apply a cap, in ticks.
const WRITE_TICKS: u64 = 1;

/// Something that happens at a time of the simulation.
#[derive(Clone, Debug)]
pub enum BudgetChange {
    /// The budget changes.
    Budget(Watts),
    /// A program starts on a GPU, or the present one ends (`None`).
    Program(usize, Option<SimulatedProgram>),
}

/// Who sets the caps.
#[derive(Clone, Debug)]
pub enum BudgetPolicy {
    /// The control algorithm of `budget`; the values are the priority and the floor of each GPU.
    Budgeter(Vec<(f64, Option<Watts>)>),
    /// Caps that follow the budget: each GPU has this share of it.
    Shares(Vec<f64>),
    /// Caps that do not change.
    Fixed(Vec<Watts>),
}

/// GPUs, what happens on them, and who sets their caps.
#[derive(Clone, Debug)]
pub struct BudgetScenario {
    /// The GPUs, with the programs that run from the start.
    pub gpus: Vec<BudgetedGpu>,
    /// The budget at the start.
    pub budget: Watts,
    /// The GPUs of each job on several GPUs, which wait for each other after each iteration.
    pub jobs: Vec<Vec<usize>>,
    /// What happens later, in order of time.
    pub changes: Vec<(Seconds, BudgetChange)>,
    /// How long the simulation lasts.
    pub time: Seconds,
    /// The seed of the noise of readings.
    pub seed: u64,
}

/// The mean state of a second.
#[derive(Clone, Debug)]
pub struct BudgetSample {
    /// The end of the second.
    pub at: Seconds,
    /// The budget.
    pub budget: Watts,
    /// The true sum of powers.
    pub power: Watts,
    /// The caps of the GPUs.
    pub caps: Vec<Watts>,
}

/// The result of a simulation.
#[derive(Clone, Debug)]
pub struct BudgetOutcome {
    /// How well the budget was kept, by the true powers.
    pub statistics: BudgetStatistics,
    /// The items that were done on each GPU.
    pub items: Vec<f64>,
    /// The messages of the control algorithm.
    pub notices: Vec<(Seconds, BudgetNotice)>,
    /// A sample for each second.
    pub samples: Vec<BudgetSample>,
    /// The number of caps that were set.
    pub changes: u64,
    /// The highest sum of caps relative to the budget, more than a second after a change of the budget.
    pub highest_caps: f64,
}

/// Runs a scenario.
pub fn simulate_budget(scenario: &BudgetScenario, policy: &BudgetPolicy) -> BudgetOutcome {
    Simulation::new(scenario, policy).run(scenario.time)
}

/// A running simulation.
struct Simulation<'a> {
    gpus: Vec<BudgetedGpu>,
    budget: Watts,
    budget_changed: f64,
    jobs: Vec<Vec<usize>>,
    changes: VecDeque<(Seconds, BudgetChange)>,
    policy: &'a BudgetPolicy,
    budgeter: Option<Budgeter>,
    /// The caps that are on their way to the devices: the tick in which they are there, the GPU and the cap.
    writes: VecDeque<(u64, usize, Watts)>,
    seed: Seed,
    tick: u64,
    outcome: BudgetOutcome,
    programs: Vec<Option<u64>>,
}

impl<'a> Simulation<'a> {
    fn new(scenario: &BudgetScenario, policy: &'a BudgetPolicy) -> Self {
        let gpus = scenario.gpus.clone();
        let budgeter = match policy {
            BudgetPolicy::Shares(_) | BudgetPolicy::Fixed(_) => None,
            BudgetPolicy::Budgeter(options) => {
                let devices = gpus.iter().zip(options).map(|(gpu, (priority, floor))| {
                    let cap = &gpu.profile().cap;
                    BudgetedDevice {
                        priority: *priority,
                        floor: *floor,
                        ..BudgetedDevice::new(cap.min, cap.default)
                    }
                });
                let config = BudgetConfig {
                    budget: scenario.budget,
                    gpus: devices.collect(),
                };
                Budgeter::new(&config).ok()
            }
        };
        Self {
            programs: vec![None; gpus.len()],
            budget: scenario.budget,
            budget_changed: 0.0,
            jobs: scenario.jobs.clone(),
            changes: scenario.changes.iter().cloned().collect(),
            policy,
            budgeter,
            writes: VecDeque::new(),
            seed: Seed::new(scenario.seed),
            tick: 0,
            outcome: BudgetOutcome {
                statistics: BudgetStatistics::default(),
                items: Vec::new(),
                notices: Vec::new(),
                samples: Vec::new(),
                changes: 0,
                highest_caps: 0.0,
            },
            gpus,
        }
    }

    fn run(mut self, time: Seconds) -> BudgetOutcome {
        // Programs have run for a while before the budget is set, so that nothing before the first plan counts.
        self.set_caps();
        let ticks = (time.get() / TICK).round() as u64;
        let mut second = 0.0;
        while self.tick < ticks {
            self.tick += 1;
            let now = Seconds::new(self.tick as f64 * TICK);
            while self.changes.front().is_some_and(|(at, _)| *at < now) {
                if let Some((_, change)) = self.changes.pop_front() {
                    self.change(now, change);
                }
            }
            self.arrive(now);
            let sum = self.advance(now);
            second += sum / 10.0;
            let (tick, power) = (Seconds::new(TICK), Watts::new(sum));
            self.outcome.statistics.record(tick, power, self.budget);
            if self.tick.is_multiple_of(10) {
                self.outcome.samples.push(BudgetSample {
                    at: now,
                    budget: self.budget,
                    power: Watts::new(std::mem::take(&mut second)),
                    caps: self.gpus.iter().map(BudgetedGpu::cap).collect(),
                });
            }
            self.send(now, BudgetEvent::Tick);
            let caps: Watts = self.gpus.iter().map(BudgetedGpu::cap).sum();
            if now.get() - self.budget_changed > 1.0 {
                let share = (caps / self.budget).get();
                self.outcome.highest_caps = self.outcome.highest_caps.max(share);
            }
        }
        self.outcome.items = self.gpus.iter().map(BudgetedGpu::items).collect();
        self.outcome.changes = self.budgeter.as_ref().map_or(0, Budgeter::changes);
        self.outcome
    }

    /// Makes a change that is due.
    fn change(&mut self, now: Seconds, change: BudgetChange) {
        match change {
            BudgetChange::Budget(budget) => {
                self.budget = budget;
                self.budget_changed = now.get();
                self.set_caps();
                self.send(now, BudgetEvent::Budget(budget));
            }
            // A job starts and ends on all its GPUs.
            BudgetChange::Program(gpu, program) => {
                for member in self.members(gpu) {
                    self.gpus[member].run(program.clone());
                }
            }
        }
    }

    /// Sets the caps, if they do not depend on what the GPUs do.
    fn set_caps(&mut self) {
        let caps: Vec<Watts> = match self.policy {
            BudgetPolicy::Budgeter(_) => return,
            BudgetPolicy::Shares(shares) => {
                shares.iter().map(|share| self.budget * *share).collect()
            }
            BudgetPolicy::Fixed(caps) => caps.clone(),
        };
        for (gpu, cap) in self.gpus.iter_mut().zip(caps) {
            gpu.set_cap(cap);
        }
    }

    /// Applies the caps that have reached their devices.
    fn arrive(&mut self, now: Seconds) {
        while let Some((at, gpu, cap)) = self.writes.front().copied()
            && at <= self.tick
        {
            self.writes.pop_front();
            self.gpus[gpu].set_cap(cap);
            let cap = self.gpus[gpu].cap();
            self.send(now, BudgetEvent::Applied { gpu, cap });
        }
    }

    /// Advances all GPUs by a tick, and passes what they show to the control algorithm. Returns the sum of their powers.
    fn advance(&mut self, now: Seconds) -> f64 {
        let mut sum = 0.0;
        self.wait_for_each_other();
        for number in 0..self.gpus.len() {
            let program = self.gpus[number].program();
            if self.programs[number] != program {
                self.programs[number] = program;
                self.send(
                    now,
                    BudgetEvent::Program {
                        gpu: number,
                        program: program.map(|id| id + 1000 * self.job_of(number) as u64),
                    },
                );
            }
            let span = self.gpus[number].advance(Seconds::new(TICK));
            sum += span.power;
            let seed = self.seed.number(number as u64).number(self.tick);
            let noise = 1.0 + READING_NOISE * seed.normal();
            let reading = GpuReading {
                power: Watts::new(span.power * noise),
                limited: Some(Ratio::new(span.limited)),
                is_busy: program.is_some(),
            };
            let gpu = number;
            self.send(now, BudgetEvent::Read { gpu, reading });
            // One GPU of a job reports for all of them.
            let members = self.members(number);
            if members.first() != Some(&number) {
                continue;
            }
            for (at, items) in span.reports {
                let items = items * members.len() as f64;
                for gpu in &members {
                    let gpu = *gpu;
                    self.send(now, BudgetEvent::Progress { gpu, at, items });
                }
            }
        }
        sum
    }

    /// The GPUs of the job that a GPU works on, itself among them.
    fn members(&self, number: usize) -> Vec<usize> {
        let job = self.jobs.iter().find(|job| job.contains(&number));
        job.cloned().unwrap_or_else(|| vec![number])
    }

    /// The first GPU of the job that a GPU works on.
    fn job_of(&self, number: usize) -> usize {
        self.members(number).into_iter().min().unwrap_or(number)
    }

    /// Lets no GPU of a job run further ahead of the slowest than that one may come in a tick.
    fn wait_for_each_other(&mut self) {
        for job in &self.jobs {
            let done = job.iter().map(|gpu| self.gpus[*gpu].iterations());
            let slowest = done.collect::<Option<Vec<u64>>>();
            let slowest = slowest.and_then(|done| done.into_iter().min());
            for gpu in job {
                let gpu = &mut self.gpus[*gpu];
                let step = gpu.iterations_within(Seconds::new(TICK));
                gpu.allow(slowest.map(|slowest| slowest + step));
            }
        }
    }

    /// Passes an event to the control algorithm and carries out its actions.
    fn send(&mut self, now: Seconds, event: BudgetEvent) {
        let Some(budgeter) = &mut self.budgeter else {
            return;
        };
        for action in budgeter.step(now, event) {
            match action {
                BudgetAction::Set { gpu, cap } => {
                    self.writes.push_back((self.tick + WRITE_TICKS, gpu, cap));
                }
                BudgetAction::Notify(notice) => self.outcome.notices.push((now, notice)),
            }
        }
    }
}

impl BudgetOutcome {
    /// The throughput of each GPU with a program relative to `full`, the items that each would have done without a cap, as
    /// a mean over them.
    pub fn normalised_throughput(&self, full: &[f64]) -> f64 {
        let pairs = self.items.iter().zip(full);
        let shares: Vec<f64> = pairs
            .filter(|(_, full)| **full > 0.0)
            .map(|(items, full)| items / full)
            .collect();
        shares.iter().sum::<f64>() / shares.len().max(1) as f64
    }
}
