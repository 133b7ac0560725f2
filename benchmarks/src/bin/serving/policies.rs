//! Policies that others use, and those that know everything.

use std::time::Instant;

use sweetspot_control::slo::{LatencyKind, ServingPage, SloController};
use sweetspot_quantity::{Megahertz, Seconds};
use sweetspot_sim::{LlmEngine, Load};
use sweetspot_virtual_time::serving::{ClockPolicy, ServingScenario};

/// The lowest clock whose predicted latency keeps the bounds, with the true times of the model.
pub struct LowestClock {
    /// The clocks, ascending.
    clocks: Vec<Megahertz>,
    prefill_per_token: f64,
    first_bound: f64,
    token_bound: f64,
    /// VoltanaLLM's rule: the highest clock whenever a request waits.
    is_highest_if_waiting: bool,
    /// The share of the bound on the first token that is used.
    first_share: f64,
    /// The share of the bound between tokens that is used, in steps without and with prompts.
    token_share: [f64; 2],
    /// The lowest clock that is used, as an index.
    floor: usize,
}

impl LowestClock {
    fn new(scenario: &ServingScenario) -> Self {
        let bound = |kind| {
            let found = scenario.slos.iter().find(|slo| slo.kind == kind);
            found.map_or(f64::INFINITY, |slo| slo.bound.get())
        };
        Self {
            clocks: scenario.clocks(),
            prefill_per_token: scenario.model.prefill_s[1]
                + scenario.model.prefill_s[0] / scenario.limits.prompt_tokens as f64,
            first_bound: bound(LatencyKind::FirstToken),
            token_bound: bound(LatencyKind::InterToken),
            is_highest_if_waiting: false,
            first_share: 0.9,
            token_share: [0.95, 0.95],
            floor: 0,
        }
    }

    /// VoltanaLLM's rule: any waiting request means the highest clock, else the lowest one whose predicted latency keeps the
    /// bound.
    pub fn voltana(scenario: &ServingScenario) -> Self {
        Self {
            is_highest_if_waiting: true,
            ..Self::new(scenario)
        }
    }

    /// Policies that know the model, every request and its time, and switch at once before every step; the cheapest one in
    /// hindsight is the oracle.
    pub fn oracles(scenario: &ServingScenario) -> Vec<Self> {
        let mut all = Vec::new();
        for floor in [0, 4, 8, 12, 16] {
            for first_share in [0.6, 0.9] {
                for with_prompts in [0.95, 3.0] {
                    all.push(Self {
                        floor,
                        first_share,
                        token_share: [0.95, with_prompts],
                        ..Self::new(scenario)
                    });
                }
            }
        }
        all
    }

    /// The time of a step at a clock.
    fn step_time(share: f64, loads: &[Load]) -> f64 {
        let times = loads.iter().map(|load| match load {
            Load::Kernels { core, memory, .. } => core.get() / share + memory.get(),
            _ => 0.0,
        });
        times.sum()
    }

    /// Whether all who wait for their first token get it in time at this clock.
    fn answers_in_time(&self, now: Seconds, engine: &LlmEngine, share: f64) -> bool {
        let mut work = 0.0;
        let mut unanswered = engine.unanswered();
        unanswered.all(|(request, left)| {
            work += left as f64 * self.prefill_per_token / share * 1.3;
            (now - request.arrival).get() + work <= self.first_bound * self.first_share
        })
    }
}

impl ClockPolicy for LowestClock {
    fn before_step(
        &mut self,
        now: Seconds,
        engine: &LlmEngine,
        loads: &[Load],
    ) -> Option<Megahertz> {
        let highest = *self.clocks.last()?;
        if self.is_highest_if_waiting && engine.unanswered().next().is_some() {
            return Some(highest);
        }
        let bound = self.token_bound * self.token_share[usize::from(loads.len() > 1)];
        let keeps = |clock: &&Megahertz| {
            let share = (**clock / highest).get();
            let is_in_time = loads.len() == 1 && engine.unanswered().next().is_some()
                || Self::step_time(share, loads) <= bound;
            is_in_time && self.answers_in_time(now, engine, share)
        };
        let found = self.clocks[self.floor..].iter().find(keeps);
        Some(found.copied().unwrap_or(highest))
    }
}

/// The controller with the time of its decisions.
pub struct Timed {
    controller: SloController,
    count: u32,
    total_us: f64,
}

impl Timed {
    pub fn new(controller: SloController) -> Self {
        Self {
            controller,
            count: 0,
            total_us: 0.0,
        }
    }

    /// The mean time of a decision, in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.total_us / f64::from(self.count.max(1))
    }
}

impl ClockPolicy for Timed {
    fn on_page(&mut self, page: &ServingPage) -> Option<Megahertz> {
        let begun = Instant::now();
        let clock = self.controller.step(page).clock;
        self.total_us += begun.elapsed().as_secs_f64() * 1e6;
        self.count += 1;
        clock
    }
}
