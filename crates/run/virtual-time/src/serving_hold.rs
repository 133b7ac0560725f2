//! `hold --knob batch` for a server of a language model that batches continuously: its running requests follow the limit
//! over seconds, and each new request begins with its prompt.

use sweetspot_control::hold::{
    CompletedBatch, HoldConfig, HoldEvent, HoldStatistics, HoldSummary, Holder, PowerReading,
};
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_sim::{
    Chip, EngineLimits, GpuProfile, Limits, LlmEngine, LlmModel, LlmRequest, Load, State,
};
use sweetspot_stats::Seed;

use crate::SimulationError;

/// The time that a reading of the power covers, in seconds.
const READING: f64 = 0.02;
/// The power sensor's buffer is read after so many readings.
const READINGS_PER_READ: usize = 5;

/// A server with clients that send the next request when the last one is answered.
#[derive(Clone, Debug)]
pub struct ClosedLoopServer {
    /// The GPU.
    pub gpu: GpuProfile,
    /// What the steps of the language model cost.
    pub model: LlmModel,
    /// The limits of the engine.
    pub limits: EngineLimits,
    /// The number of clients.
    pub clients: u64,
    /// The tokens of each prompt and of each answer.
    pub tokens: (u64, u64),
    /// How much the lengths of answers differ: the largest deviation as a share. Without it, requests that started together
    /// end together.
    pub spread: f64,
    /// The seed of the lengths.
    pub seed: u64,
}

/// What holding a limit came to.
#[derive(Clone, Debug)]
pub struct ServingHold {
    /// The statistics of `hold`, from the true power in steps of 20 ms.
    pub summary: HoldSummary,
    /// The times and the values of all limits.
    pub limits: Vec<(Seconds, u64)>,
    /// Batches: their ends and items.
    batches: Vec<(f64, u64)>,
    /// The true mean powers of each reading.
    powers: Vec<f64>,
}

impl ServingHold {
    /// The tokens per second from this moment on.
    pub fn tokens_per_s(&self, from: Seconds) -> f64 {
        let after = self.batches.iter().filter(|(at, _)| *at > from.get());
        let items: u64 = after.map(|(_, items)| items).sum();
        let end = self.batches.last().map_or(0.0, |(at, _)| *at);
        items as f64 / (end - from.get()).max(1e-9)
    }

    /// The mean power from this moment on.
    pub fn power(&self, from: Seconds) -> Watts {
        let powers = &self.powers[((from.get() / READING) as usize).min(self.powers.len())..];
        Watts::new(powers.iter().sum::<f64>() / (powers.len() as f64).max(1.0))
    }

    /// The share of the time from this moment on in which the mean power of a second was above a cap.
    pub fn share_above(&self, cap: Watts, from: Seconds) -> f64 {
        let powers = &self.powers[((from.get() / READING) as usize).min(self.powers.len())..];
        let second = (1.0 / READING) as usize;
        let means = powers.windows(second);
        let count = means.len().max(1) as f64;
        let above = means.filter(|span| span.iter().sum::<f64>() > cap.get() * second as f64);
        above.count() as f64 / count
    }
}

impl ClosedLoopServer {
    /// Serves for a time while the controller sets the limit.
    pub fn hold(&self, config: HoldConfig, time: Seconds) -> Result<ServingHold, SimulationError> {
        let mut statistics = HoldStatistics::new(config.cap, config.cap_on);
        statistics.start(Seconds::ZERO);
        let mut run = self.start(Some(Holder::new(config)?), statistics);
        run.serve(time.get());
        Ok(run.outcome())
    }

    /// Serves for a time with a fixed limit; excesses are those of the cap.
    pub fn serve_fixed(&self, limit: u64, config: &HoldConfig, time: Seconds) -> ServingHold {
        let mut statistics = HoldStatistics::new(config.cap, config.cap_on);
        statistics.start(Seconds::ZERO);
        let mut run = self.start(None, statistics);
        run.limit = limit;
        run.serve(time.get());
        run.outcome()
    }

    fn start(&self, holder: Option<Holder>, statistics: HoldStatistics) -> Run<'_> {
        let chip = Chip::new(&self.gpu);
        let limit = holder.as_ref().map_or(1, |holder| holder.setting().batch);
        Run {
            state: chip.rest_state(),
            chip_limits: chip.limits(self.gpu.cap.default, None, None),
            chip,
            engine: LlmEngine::new(self.model, self.limits),
            holder,
            statistics,
            limit,
            limits: vec![(Seconds::ZERO, limit)],
            now: 0.0,
            energy: 0.0,
            readings: Vec::new(),
            read: 0,
            batches: Vec::new(),
            sent: 0,
            server: self,
        }
    }
}

/// A run of the server.
struct Run<'a> {
    server: &'a ClosedLoopServer,
    chip: Chip,
    state: State,
    chip_limits: Limits,
    engine: LlmEngine,
    holder: Option<Holder>,
    statistics: HoldStatistics,
    limit: u64,
    limits: Vec<(Seconds, u64)>,
    now: f64,
    /// The energy of the reading in progress, in joules.
    energy: f64,
    readings: Vec<f64>,
    /// The number of readings that the controller has received.
    read: usize,
    batches: Vec<(f64, u64)>,
    sent: u64,
}

impl Run<'_> {
    fn serve(&mut self, end: f64) {
        while self.now < end {
            self.send_requests();
            self.engine.limits.requests = self.limit as usize;
            let (limit, begun) = (self.limit, self.now);
            let loads = self.engine.begin_step();
            let items = self.engine.in_step() as u64;
            for load in &loads {
                self.pass(load);
            }
            self.engine.end_step(Seconds::new(self.now));
            self.batches.push((self.now, items));
            let batch = CompletedBatch {
                size: limit.max(items),
                items,
                duration: Seconds::new(self.now - begun),
                latency: None,
            };
            self.statistics.record_batch(Seconds::new(self.now), &batch);
            self.send(HoldEvent::BatchCompleted(batch));
        }
    }

    /// Lets each client without a request send one.
    fn send_requests(&mut self) {
        let active = (self.engine.running() + self.engine.waiting()) as u64;
        for _ in active..self.server.clients {
            let id = self.sent;
            self.sent += 1;
            let (prompt, output) = self.server.tokens;
            // The first ones are of unlike lengths, so that they do not all end together.
            let share = if id < self.server.clients {
                (id + 1) as f64 / self.server.clients as f64
            } else {
                let draw = Seed::new(self.server.seed).number(id).uniform();
                1.0 + self.server.spread * (2.0 * draw - 1.0)
            };
            self.engine.add(LlmRequest {
                id,
                arrival: Seconds::new(self.now),
                prompt,
                output: (output as f64 * share) as u64,
            });
        }
    }

    /// Lets the GPU work on a load until it is done.
    fn pass(&mut self, load: &Load) {
        let mut left = sweetspot_quantity::Ratio::new(1.0);
        while left > sweetspot_quantity::Ratio::new(1e-12) {
            let next = (self.readings.len() + 1) as f64 * READING;
            let at_most = Seconds::new((next - self.now).max(1e-9));
            let step = self
                .chip
                .step(&mut self.state, &self.chip_limits, load, left, at_most);
            left -= step.done;
            self.now += step.time.get();
            self.energy += step.power.get() * step.time.get();
            if self.now >= next - 1e-9 {
                self.end_reading(next);
            }
        }
    }

    fn end_reading(&mut self, to: f64) {
        let power = std::mem::take(&mut self.energy) / READING;
        self.readings.push(power);
        self.statistics.record_power(&reading(to, power));
        if self.readings.len() >= self.read + READINGS_PER_READ {
            for number in self.read..self.readings.len() {
                let (to, power) = ((number + 1) as f64 * READING, self.readings[number]);
                self.send(HoldEvent::PowerRead(reading(to, power)));
            }
            self.read = self.readings.len();
            self.send(HoldEvent::Tick);
        }
    }

    /// Passes an event to the controller and applies its answer.
    fn send(&mut self, event: HoldEvent) {
        let Some(holder) = &mut self.holder else {
            return;
        };
        let now = Seconds::new(self.now);
        let actions = holder.step(now, event);
        self.statistics.set_window_count(holder.window_count());
        if let Some(limit) = actions.batch {
            self.limit = limit;
            self.statistics.record_change(now);
            self.limits.push((now, limit));
        }
    }

    fn outcome(self) -> ServingHold {
        ServingHold {
            summary: self.statistics.summary(),
            limits: self.limits,
            batches: self.batches,
            powers: self.readings,
        }
    }
}

/// A reading that ends at this time.
fn reading(to: f64, power: f64) -> PowerReading {
    PowerReading {
        from: Seconds::new(to - READING),
        to: Seconds::new(to),
        power: Watts::new(power),
    }
}
