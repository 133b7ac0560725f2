//! The state machine that keeps a budget.

use sweetspot_quantity::{Seconds, Watts};

use super::config::{BudgetConfig, BudgetConfigError};
use super::divide::{Claim, divide};
use super::event::{BudgetAction, BudgetEvent, BudgetNotice};
use super::gpu::GpuState;
use super::statistics::BudgetStatistics;

/// The time between two plans if nothing happens, in seconds.
const PLAN_INTERVAL: f64 = 1.0;
/// A plan is carried out if it brings this share more of the throughput of all GPUs than the present caps.
const WORTHWHILE_GAIN: f64 = 0.002;
/// Caps that differ by less than this are left as they are, in watts.
const SMALLEST_CHANGE: f64 = 1.0;
/// How long a GPU is given its highest cap to learn the full throughput of its program, in seconds, and how often that is
/// tried.
const PROBE_TIME: f64 = 4.5;
/// How long programs are observed before the first plan, in seconds, while they draw less than this share of the budget.
const OBSERVING_TIME: f64 = 1.5;
const OBSERVED_SHARE: f64 = 0.97;
/// The most that probes take away from other GPUs, as a share of the budget.
const PROBE_SHARE: f64 = 0.2;
/// A probe that cannot have this share of the way to the highest cap is not made.
const SMALLEST_PROBE: f64 = 0.15;
/// The highest share of the budget that is kept unused because GPUs went above their caps.
const MAX_MARGIN: f64 = 0.05;
/// How fast that margin is given up again, in seconds.
const MARGIN_MEMORY: f64 = 600.0;
/// The time constant with which the sum of powers is compared with the budget, in seconds.
const TICK: f64 = 0.1;

/// A program that gets more power for some seconds, to learn its full throughput.
#[derive(Clone, Debug)]
struct Probe {
    /// The GPUs of the program, and the cap that each gets.
    caps: Vec<(usize, f64)>,
    end: f64,
}

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
            false => gpu.power,
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
                }
            }
            BudgetEvent::Read { gpu, reading } => {
                let gpu = self.gpus.get_mut(gpu);
                if gpu.is_some_and(|gpu| gpu.read(now, &reading)) {
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
            BudgetEvent::Lost { gpu } => {
                if let Some(gpu) = self.gpus.get_mut(gpu) {
                    gpu.is_lost = true;
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
        self.statistics.record(time, sum, budget);
        let mean = self.recent.record(time, sum, budget);
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
            if gpu.is_above_cap(now) && gpu.power > gpu.least_power + 2.0 {
                let is_first = gpu.least_power <= 0.0;
                gpu.least_power = gpu.power;
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
    }

    /// Divides the budget anew.
    fn plan(&mut self, now: f64, actions: &mut Vec<BudgetAction>) {
        self.next_plan = now + PLAN_INTERVAL;
        self.plans += 1;
        let is_urgent = std::mem::take(&mut self.is_urgent);
        if let Some(done) = self.probe.take_if(|probe| now >= probe.end) {
            for (number, _) in done.caps {
                self.gpus[number].was_probed = true;
            }
        }
        if self.probe.is_none() && !is_urgent {
            self.probe = self.next_probe(now);
        }
        let budget = self.budget * (1.0 - self.margin);
        let mut claims = self.claims();
        let least: f64 = claims.iter().map(|claim| claim.min).sum();
        self.note_feasibility(least, actions);
        self.be_cautious(budget, &mut claims);
        let mut powers = divide(budget, &claims);
        self.join_jobs(&mut powers);
        let is_new = self.probe.is_some() || is_urgent;
        if is_new || self.is_worthwhile(&claims, &powers, budget) {
            self.targets = powers;
        }
    }

    /// What each GPU may get.
    fn claims(&mut self) -> Vec<Claim> {
        let probed: &[(usize, f64)] = self.probe.as_ref().map_or(&[], |probe| &probe.caps);
        let probe_of = |gpu| {
            let mut probed = probed.iter();
            probed.find(|(number, _)| *number == gpu).map(|one| one.1)
        };
        let gpus = self.gpus.iter_mut().enumerate();
        gpus.map(|(number, gpu)| gpu.claim(probe_of(number)))
            .collect()
    }

    /// Keeps caps from falling far below what was measured, if the budget allows that.
    fn be_cautious(&self, budget: f64, claims: &mut [Claim]) {
        let cautious = |claim: &Claim, gpu: &GpuState| match claim.weight > 0.0 {
            true => gpu.cautious_min().clamp(claim.min, claim.useful),
            false => claim.min,
        };
        let pairs = claims.iter().zip(&self.gpus);
        let sum: f64 = pairs.map(|(claim, gpu)| cautious(claim, gpu)).sum();
        if sum <= budget {
            for (claim, gpu) in claims.iter_mut().zip(&self.gpus) {
                claim.min = cautious(claim, gpu);
            }
        }
    }

    /// Says once that the budget cannot be kept, and once that it can again.
    fn note_feasibility(&mut self, least: f64, actions: &mut Vec<BudgetAction>) {
        let is_infeasible = least > self.budget * 1.0001;
        if is_infeasible == self.is_infeasible {
            return;
        }
        self.is_infeasible = is_infeasible;
        let budget = Watts::new(self.budget);
        let floor = Watts::new(least);
        actions.push(BudgetAction::Notify(match is_infeasible {
            true => BudgetNotice::BelowFloor { budget, floor },
            false => BudgetNotice::Feasible { budget },
        }));
    }

    /// The next program whose full throughput is not known, if the others can do with less for some seconds.
    fn next_probe(&self, now: f64) -> Option<Probe> {
        let is_unknown = |gpu: &GpuState| gpu.is_controlled() && gpu.is_busy && !gpu.was_probed;
        let first = self.gpus.iter().position(is_unknown)?;
        let is_member = |number: &usize| {
            let gpu = &self.gpus[*number];
            let of_job = gpu.program.is_some() && gpu.program == self.gpus[first].program;
            *number == first || (of_job && gpu.is_controlled())
        };
        let (members, others): (Vec<usize>, Vec<usize>) =
            (0..self.gpus.len()).partition(|number| is_member(number));
        let max = |number: usize| self.gpus[number].device.max_cap.get();
        let wanted = members
            .iter()
            .map(|one| (max(*one) - self.targets[*one]).max(0.0));
        let spare = |number: &usize| {
            let gpu = &self.gpus[*number];
            (self.targets[*number] - gpu.device.lowest_cap().max(gpu.least_power)).max(0.0)
        };
        let wanted: f64 = wanted.sum();
        let spare: f64 = others.iter().map(spare).sum();
        let share = (PROBE_SHARE * self.budget).min(0.7 * spare) / wanted.max(1e-9);
        if share < SMALLEST_PROBE && wanted > SMALLEST_CHANGE {
            return None;
        }
        let cap = |number: &usize| {
            let target = self.targets[*number];
            (*number, target + share.min(1.0) * (max(*number) - target))
        };
        Some(Probe {
            caps: members.iter().map(cap).collect(),
            end: now + PROBE_TIME,
        })
    }

    /// Gives like GPUs of one job the same cap: they wait for the slowest.
    fn join_jobs(&self, powers: &mut [f64]) {
        for number in 0..powers.len() {
            let gpu = &self.gpus[number];
            let Some(program) = gpu.program else { continue };
            let is_like = |other: &usize| {
                let other = &self.gpus[*other];
                other.program == Some(program)
                    && other.device.max_cap == gpu.device.max_cap
                    && other.is_controlled()
            };
            let members: Vec<usize> = (0..powers.len()).filter(is_like).collect();
            if members.len() > 1 && members[0] == number {
                let mean =
                    members.iter().map(|one| powers[*one]).sum::<f64>() / members.len() as f64;
                members.iter().for_each(|one| powers[*one] = mean);
            }
        }
    }

    /// Whether new caps bring enough more than the targets, or the targets exceed the budget.
    fn is_worthwhile(&self, claims: &[Claim], powers: &[f64], budget: f64) -> bool {
        let value = |powers: &[f64]| -> f64 {
            let parts = claims.iter().zip(powers);
            parts
                .map(|(claim, power)| claim.weight * claim.shape.share(*power))
                .sum()
        };
        let weight: f64 = claims.iter().map(|claim| claim.weight).sum();
        let sum: f64 = self.targets.iter().sum();
        let is_outside = claims
            .iter()
            .zip(&self.targets)
            .any(|(claim, target)| *target < claim.min - 0.5 || *target > claim.max + 0.5);
        is_outside
            || sum > budget + SMALLEST_CHANGE
            || value(powers) > value(&self.targets) + WORTHWHILE_GAIN * weight
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
            if step > free && free < 0.25 * step {
                continue;
            }
            let cap = target.min(counted + step.min(free.max(0.0)));
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
