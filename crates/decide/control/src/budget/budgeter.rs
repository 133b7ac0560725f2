//! The state machine that keeps a budget.

mod plan;
mod probe;
#[cfg(test)]
mod tests;

use sweetspot_quantity::{Seconds, Watts};

use self::probe::Probe;
use super::config::{BudgetConfig, BudgetConfigError};
use super::event::{BudgetAction, BudgetEvent, BudgetNotice};
use super::gpu::GpuState;
use super::statistics::BudgetStatistics;

/// Caps that differ by less than this are left as they are, in watts.
const SMALLEST_CHANGE: f64 = 1.0;
/// How long programs are observed before the first plan, in seconds, while they draw less than this share of the budget.
const OBSERVING_TIME: f64 = 1.5;
const OBSERVED_SHARE: f64 = 0.97;
/// The highest share of the budget that is kept unused because GPUs went above their caps.
const MAX_MARGIN: f64 = 0.05;
/// How fast that margin is given up again, in seconds.
const MARGIN_MEMORY: f64 = 600.0;
/// The time constant with which the sum of powers is compared with the budget, in seconds.
const TICK: f64 = 0.1;

/// Keeps the sum of the power of several GPUs under a budget.
#[derive(Clone, Debug)]
pub struct Budgeter {
    gpus: Vec<GpuState>,
    budget: f64,
    targets: Vec<f64>,
    next_plan: f64,
    last_tick: Option<f64>,
    /// Whether something has happened that needs a new plan at once.
    is_urgent: bool,
    /// The program that gets more power for some seconds, to learn its full throughput.
    probe: Option<Probe>,
    /// The share of the budget that is kept unused.
    margin: f64,
    is_infeasible: bool,
    /// When a message last said whether the budget can be kept, in seconds.
    feasibility_noted: f64,
    recent: BudgetStatistics,
    statistics: BudgetStatistics,
    plans: u64,
    changes: u64,
    began: Option<f64>,
}

impl Budgeter {
    /// Creates the state machine; nothing is set yet.
    pub fn new(config: &BudgetConfig) -> Result<Self, BudgetConfigError> {
        config.check()?;
        let gpus: Vec<GpuState> = config.gpus.iter().map(|gpu| GpuState::new(*gpu)).collect();
        Ok(Self {
            targets: gpus.iter().map(|gpu| gpu.cap).collect(),
            gpus,
            budget: config.budget.get(),
            next_plan: f64::NEG_INFINITY,
            last_tick: None,
            is_urgent: true,
            probe: None,
            margin: 0.0,
            is_infeasible: false,
            feasibility_noted: f64::NEG_INFINITY,
            recent: BudgetStatistics::default(),
            statistics: BudgetStatistics::default(),
            plans: 0,
            changes: 0,
            began: None,
        })
    }

    /// The budget.
    pub const fn budget(&self) -> Watts {
        Watts::new(self.budget)
    }

    /// How well the budget was kept.
    pub const fn statistics(&self) -> &BudgetStatistics {
        &self.statistics
    }

    /// The cap of a GPU, as last confirmed.
    pub fn cap(&self, gpu: usize) -> Option<Watts> {
        self.gpus.get(gpu).map(GpuState::cap_power)
    }

    /// The mean power of a GPU over the last readings.
    pub fn power(&self, gpu: usize) -> Option<Watts> {
        self.gpus.get(gpu).map(|gpu| Watts::new(gpu.power))
    }

    /// The items per second of the program on a GPU, if it reports them.
    pub fn rate(&self, gpu: usize) -> Option<f64> {
        self.gpus.get(gpu).and_then(|gpu| gpu.rate)
    }

    /// Whether a program uses a GPU.
    pub fn is_busy(&self, gpu: usize) -> bool {
        self.gpus.get(gpu).is_some_and(|gpu| gpu.is_busy)
    }

    /// The number of caps that were set.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// The lowest sum of caps that can be set: below it the budget cannot be kept by caps.
    pub fn lowest_budget(&self) -> Watts {
        let lowest = |gpu: &GpuState| match gpu.is_controlled() {
            true => gpu.device.lowest_cap(),
            false if gpu.is_lost => 0.0,
            false => gpu.uncapped_power(),
        };
        Watts::new(self.gpus.iter().map(lowest).sum())
    }

    /// Takes an event and returns what is to be done, in order.
    pub fn step(&mut self, now: Seconds, event: BudgetEvent) -> Vec<BudgetAction> {
        let now = now.get();
        match event {
            BudgetEvent::Budget(budget) => {
                if budget.is_finite() && budget > Watts::ZERO && budget.get() != self.budget {
                    self.budget = budget.get();
                    self.probe = None;
                    self.is_urgent = true;
                    self.feasibility_noted = f64::NEG_INFINITY;
                }
            }
            BudgetEvent::Read { gpu, reading } => {
                let gpu = self.gpus.get_mut(gpu);
                if gpu.is_some_and(|gpu| gpu.read(now, &reading)) {
                    self.is_urgent = true;
                }
            }
            BudgetEvent::Unread { gpu, is_busy } => {
                let gpu = self.gpus.get_mut(gpu);
                if gpu.is_some_and(|gpu| gpu.unread(now, is_busy)) {
                    self.is_urgent = true;
                }
            }
            BudgetEvent::Program { gpu, program } => {
                if let Some(gpu) = self.gpus.get_mut(gpu) {
                    gpu.set_program(now, program);
                }
            }
            BudgetEvent::Progress { gpu, at, items } => {
                if let Some(gpu) = self.gpus.get_mut(gpu) {
                    gpu.report(at, items);
                }
            }
            BudgetEvent::Applied { gpu, cap } => {
                if let Some(gpu) = self.gpus.get_mut(gpu) {
                    gpu.applied(now, cap.get());
                }
            }
            BudgetEvent::Rejected { gpu } => {
                if let Some(gpu) = self.gpus.get_mut(gpu) {
                    gpu.device.is_settable = false;
                    gpu.asked = None;
                    self.is_urgent = true;
                }
            }
            BudgetEvent::Settable { gpu, max_cap } => {
                if let Some(state) = self.gpus.get_mut(gpu).filter(|gpu| !gpu.is_lost) {
                    state.set_settable(now, max_cap);
                    self.targets[gpu] = state.cap;
                    self.is_urgent = true;
                }
            }
            BudgetEvent::Lost { gpu } => {
                if let Some(gpu) = self.gpus.get_mut(gpu) {
                    gpu.is_lost = true;
                    gpu.is_read = false;
                    gpu.is_busy = false;
                    gpu.power = 0.0;
                    self.is_urgent = true;
                }
            }
            BudgetEvent::Tick => return self.tick(now),
        }
        Vec::new()
    }

    /// Looks at the sum of powers, plans if that is due, and moves caps towards the plan.
    fn tick(&mut self, now: f64) -> Vec<BudgetAction> {
        let mut actions = Vec::new();
        self.judge(now);
        self.note_least_powers(now, &mut actions);
        if self.is_observing(now) {
            return actions;
        }
        let is_probed = self.probe.as_ref().is_some_and(|probe| now >= probe.end);
        if self.is_urgent || is_probed || now >= self.next_plan {
            self.plan(now, &mut actions);
        }
        self.move_caps(&mut actions);
        actions
    }

    /// Whether the first plan can wait: what programs take without a new cap is worth knowing. It cannot if the GPUs
    /// together are near the budget.
    fn is_observing(&mut self, now: f64) -> bool {
        let begin = *self.began.get_or_insert(now);
        let sum: f64 = self.gpus.iter().map(|gpu| gpu.last_power).sum();
        self.plans == 0 && now - begin < OBSERVING_TIME && sum < OBSERVED_SHARE * self.budget
    }

    /// Records the sum of powers, and keeps a larger margin if it was above the budget although the caps were not.
    fn judge(&mut self, now: f64) {
        let time = self.last_tick.map_or(TICK, |last| now - last);
        self.last_tick = Some(now);
        let sum: f64 = self.gpus.iter().map(|gpu| gpu.last_power).sum();
        let (time, sum) = (Seconds::new(time.max(0.0)), Watts::new(sum));
        let budget = Watts::new(self.budget);
        // Without the power of each GPU there is no sum.
        match self.gpus.iter().all(|gpu| gpu.is_read) {
            true => {
                self.statistics.record(time, sum, budget);
            }
            false => self.statistics.skip(),
        }
        // GPUs that draw more than their caps are no reason to keep all caps lower: see `note_least_powers`.
        let followed: f64 = self.gpus.iter().map(GpuState::allowed_power).sum();
        let mean = self.recent.record(time, Watts::new(followed), budget);
        self.margin *= (-time.get() / MARGIN_MEMORY).exp();
        let allowed: f64 = self.gpus.iter().map(GpuState::committed).sum();
        let excess = mean.map_or(0.0, |mean| mean.get() / self.budget - 1.0);
        if excess > 0.0 && allowed <= self.budget * 1.001 {
            self.margin = (self.margin + 0.1 * excess + 2e-4).min(MAX_MARGIN);
        }
    }

    /// Learns which GPUs draw more than their caps: what they draw is taken from the others.
    fn note_least_powers(&mut self, now: f64, actions: &mut Vec<BudgetAction>) {
        for (number, gpu) in self.gpus.iter_mut().enumerate() {
            let Some(is_first) = gpu.note_least_power(now) else {
                continue;
            };
            self.is_urgent = true;
            if is_first {
                actions.push(BudgetAction::Notify(BudgetNotice::AboveCap {
                    gpu: number,
                    power: Watts::new(gpu.power),
                    cap: Watts::new(gpu.cap),
                }));
            }
        }
    }

    /// Lowers caps towards the plan at once, and raises others as far as the budget allows now.
    fn move_caps(&mut self, actions: &mut Vec<BudgetAction>) {
        for (number, gpu) in self.gpus.iter_mut().enumerate() {
            let target = self.targets[number];
            let is_lower = target < gpu.cap - SMALLEST_CHANGE;
            if gpu.is_controlled() && gpu.asked.is_none() && is_lower {
                gpu.asked = Some(target);
                self.changes += 1;
                actions.push(BudgetAction::Set {
                    gpu: number,
                    cap: Watts::new(target),
                });
            }
        }
        let committed: f64 = self.gpus.iter().map(GpuState::committed).sum();
        let mut free = self.budget * (1.0 - self.margin) - committed;
        for (number, gpu) in self.gpus.iter_mut().enumerate() {
            let target = self.targets[number];
            let is_higher = target > gpu.cap + SMALLEST_CHANGE;
            if !(gpu.is_controlled() && gpu.asked.is_none() && is_higher) {
                continue;
            }
            // Nothing is taken from the budget up to what the GPU may draw, or draws, already.
            let counted = gpu.committed();
            let step = (target - counted).max(0.0);
            // A raise waits until all of it fits, or a good part: every write costs time.
            // A GPU at its lowest clock draws less once it may leave it.
            if step > free && free < 0.25 * step && !gpu.is_stuck {
                continue;
            }
            let cap = match gpu.is_stuck {
                true => target,
                false => target.min(counted + step.min(free.max(0.0))),
            };
            if cap < gpu.cap + SMALLEST_CHANGE {
                continue;
            }
            free -= (cap - counted).max(0.0);
            gpu.asked = Some(cap);
            self.changes += 1;
            actions.push(BudgetAction::Set {
                gpu: number,
                cap: Watts::new(cap),
            });
        }
    }
}
