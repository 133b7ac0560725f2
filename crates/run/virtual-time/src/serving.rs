//! A language model that serves a trace of requests on a simulated GPU, while a policy sets its core clock.

use std::collections::HashMap;

use sweetspot_control::slo::{LatencyKind, ServingPage, Slo, SloConfig, SloController};
use sweetspot_metrics::{MetricsTracker, ServerMetrics};
use sweetspot_quantity::{Joules, Megahertz, Ratio, Seconds, Watts};
use sweetspot_sim::{
    Chip, EngineLimits, GeneratedToken, GpuProfile, Limits, LlmEngine, LlmMetrics, LlmModel,
    LlmRequest, Load, State,
};

/// Sets the core clock of a GPU that serves a language model.
pub trait ClockPolicy {
    /// Called before each step of the engine, with its loads; the clock takes effect at once. Only an oracle knows this.
    fn before_step(&mut self, _: Seconds, _: &LlmEngine, _: &[Load]) -> Option<Megahertz> {
        None
    }

    /// Called with each metrics page; the clock takes effect after the switch time.
    fn on_page(&mut self, _: &ServingPage) -> Option<Megahertz> {
        None
    }
}

/// A clock that stays.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock;

impl ClockPolicy for FixedClock {}

impl ClockPolicy for SloController {
    fn on_page(&mut self, page: &ServingPage) -> Option<Megahertz> {
        self.step(page).clock
    }
}

/// A trace of requests, and what serves it.
#[derive(Clone, Debug)]
pub struct ServingScenario {
    /// The GPU.
    pub gpu: GpuProfile,
    /// What the steps of the language model cost.
    pub model: LlmModel,
    /// The limits of the engine.
    pub limits: EngineLimits,
    /// The requests in order of arrival.
    pub requests: Vec<LlmRequest>,
    /// The bounds on latencies.
    pub slos: Vec<Slo>,
    /// The time between two metrics pages.
    pub page_interval: Seconds,
    /// How long a change of the clock takes.
    pub switch_time: Seconds,
}

/// What serving a trace came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServingOutcome {
    /// The energy of the GPU.
    pub energy: Joules,
    /// The time until the last request was answered.
    pub time: Seconds,
    /// The number of requests.
    pub requests: u64,
    /// The requests of which a bound was missed: the first token came too late, or more tokens than the bound allows.
    pub violations: u64,
    /// The number of generated tokens.
    pub tokens: u64,
    /// How often the clock was changed.
    pub changes: u64,
    /// The mean clock, weighted by time.
    pub mean_clock: Megahertz,
}

impl ServingOutcome {
    /// The share of requests of which a bound was missed.
    pub fn violation_share(&self) -> Ratio {
        Ratio::new(self.violations as f64 / (self.requests as f64).max(1.0))
    }
}

/// The clocks that a policy may set: the GPU's, at most this many.
const MAX_CLOCKS: usize = 28;

impl ServingScenario {
    /// The clocks that a policy may set, ascending.
    pub fn clocks(&self) -> Vec<Megahertz> {
        let core = &self.gpu.core;
        let (low, high) = (core.min.get(), core.max.get());
        let step = (high - low) / (MAX_CLOCKS - 1) as f64;
        (0..MAX_CLOCKS)
            .map(|n| Megahertz::new(low + n as f64 * step))
            .collect()
    }

    /// The controller of `hold --slo` for this scenario.
    pub fn controller(&self) -> SloController {
        SloController::new(SloConfig {
            slos: self.slos.clone(),
            clocks: self.clocks(),
            below: None,
            switch_time: self.switch_time,
        })
    }

    /// Serves the trace; the clock is the highest one at first, or `first`.
    pub fn serve(&self, first: Option<Megahertz>, policy: &mut dyn ClockPolicy) -> ServingOutcome {
        let mut run = ServingRun::new(self, first);
        run.serve(policy);
        run.outcome
    }
}

/// A trace that is being served.
struct ServingRun<'a> {
    scenario: &'a ServingScenario,
    chip: Chip,
    state: State,
    limits: Limits,
    clock: Megahertz,
    /// A clock that will be set, and when.
    pending: Option<(Seconds, Megahertz)>,
    engine: LlmEngine,
    metrics: LlmMetrics,
    tracker: MetricsTracker,
    late: HashMap<u64, LateTokens>,
    now: Seconds,
    next_page: Seconds,
    energy_at_page: f64,
    outcome: ServingOutcome,
}

/// The tokens of a request that came too late.
#[derive(Clone, Copy, Debug, Default)]
struct LateTokens {
    late: u64,
    all: u64,
    is_missed: bool,
}

impl<'a> ServingRun<'a> {
    fn new(scenario: &'a ServingScenario, first: Option<Megahertz>) -> Self {
        let chip = Chip::new(&scenario.gpu);
        let clock = first.unwrap_or(scenario.gpu.core.max);
        Self {
            scenario,
            state: chip.rest_state(),
            limits: chip.limits(scenario.gpu.cap.default, Some(clock), None),
            chip,
            clock,
            pending: None,
            engine: LlmEngine::new(scenario.model, scenario.limits),
            metrics: LlmMetrics::default(),
            tracker: MetricsTracker::default(),
            late: HashMap::new(),
            now: Seconds::ZERO,
            next_page: scenario.page_interval,
            energy_at_page: 0.0,
            outcome: ServingOutcome::default(),
        }
    }

    fn serve(&mut self, policy: &mut dyn ClockPolicy) {
        let requests = &self.scenario.requests;
        let mut next = 0;
        loop {
            while requests
                .get(next)
                .is_some_and(|one| one.arrival <= self.now)
            {
                self.engine.add(requests[next]);
                next += 1;
            }
            let loads = self.engine.begin_step();
            if loads.is_empty() {
                let Some(request) = requests.get(next) else {
                    break;
                };
                let until = request.arrival;
                self.pass(
                    &Load::Waiting {
                        host: until - self.now,
                    },
                    policy,
                );
                continue;
            }
            if let Some(clock) = policy.before_step(self.now, &self.engine, &loads) {
                self.set_clock(clock);
            }
            for load in &loads {
                self.pass(load, policy);
            }
            let now = self.now;
            for token in self.engine.end_step(now) {
                self.metrics.add(&token, now);
                self.judge(&token);
            }
        }
        self.outcome.energy = Joules::new(self.state.energy().get());
        self.outcome.time = self.now;
        self.outcome.mean_clock = self.outcome.mean_clock / self.now.get().max(1e-9);
    }

    /// Lets the GPU work on a load until it is done; pages are written meanwhile.
    fn pass(&mut self, load: &Load, policy: &mut dyn ClockPolicy) {
        let mut left = Ratio::new(1.0);
        while left > Ratio::ZERO {
            let until = match self.pending {
                Some((at, _)) => at.min(self.next_page),
                None => self.next_page,
            };
            let at_most = (until - self.now).max(Seconds::new(1e-9));
            let step = self
                .chip
                .step(&mut self.state, &self.limits, load, left, at_most);
            self.now += step.time;
            self.outcome.mean_clock += self.clock * step.time.get();
            let is_waiting = matches!(load, Load::Waiting { .. });
            left = match (step.done, is_waiting && step.time <= Seconds::ZERO) {
                (_, true) => Ratio::ZERO,
                (done, false) => left - done,
            };
            if left < Ratio::new(1e-12) {
                left = Ratio::ZERO;
            }
            if let Some((at, clock)) = self.pending
                && at <= self.now
            {
                self.pending = None;
                self.set_clock(clock);
            }
            if self.now >= self.next_page {
                self.write_page(policy);
            }
        }
    }

    fn set_clock(&mut self, clock: Megahertz) {
        if clock == self.clock {
            return;
        }
        self.clock = clock;
        self.outcome.changes += 1;
        self.limits = self
            .chip
            .limits(self.scenario.gpu.cap.default, Some(clock), None);
    }

    /// Writes a metrics page, reads it as the tool does, and passes it to the policy.
    fn write_page(&mut self, policy: &mut dyn ClockPolicy) {
        let interval = self.scenario.page_interval;
        self.next_page = self.now + interval;
        let energy = self.state.energy().get();
        let power = Watts::new((energy - self.energy_at_page) / interval.get());
        self.energy_at_page = energy;
        let Ok(Some(page)) = ServerMetrics::read(&self.metrics.page(&self.engine), None) else {
            return;
        };
        let Some(change) = self.tracker.take(page) else {
            return;
        };
        let page = ServingPage {
            at: self.now,
            interval,
            change,
            power: Some(power),
        };
        if let Some(clock) = policy.on_page(&page) {
            self.pending = Some((self.now + self.scenario.switch_time, clock));
        }
    }

    /// Counts whether the bounds of a request are kept.
    fn judge(&mut self, token: &GeneratedToken) {
        self.outcome.tokens += 1;
        let known = self.late.entry(token.request.id).or_default();
        for slo in &self.scenario.slos {
            let is_late = token.latency > slo.bound;
            match slo.kind {
                LatencyKind::FirstToken if token.is_first => known.is_missed |= is_late,
                LatencyKind::InterToken if !token.is_first => {
                    known.late += u64::from(is_late);
                    known.all += 1;
                    if token.is_last {
                        let allowed = (1.0 - slo.quantile.get()) * known.all as f64;
                        known.is_missed |= known.late as f64 > allowed;
                    }
                }
                LatencyKind::EndToEnd if token.is_last => {
                    known.is_missed |= self.now - token.request.arrival > slo.bound;
                }
                _ => {}
            }
        }
        if token.is_last {
            self.outcome.requests += 1;
            self.outcome.violations += u64::from(known.is_missed);
            self.late.remove(&token.request.id);
        }
    }
}
