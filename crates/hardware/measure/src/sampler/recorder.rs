//! What to read next, and where it is kept: the sampler's mind, without a thread or a clock of its own.

use sweetspot_device::{
    Amount, Descriptor, DeviceId, Drained, Moment, ReadError, Reading, SensorKind,
};
use sweetspot_quantity::{Joules, Seconds, Watts};

use super::beside::Beside;
use super::counter_plan::CounterPlan;
use super::poll_plan::PollPlan;
use crate::math::{CounterReading, Gap, GapReason, PowerSample, SensorModel, Span, Trace};
use crate::method::MethodChoice;

/// Something to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// The energy counter.
    Counter,
    /// The driver's buffer.
    Drain,
    /// A power sensor.
    Poll(SensorKind),
    /// Utilisation, clocks, temperature, reasons for throttling.
    Beside,
}

/// The buffer holds the last 2.3 s (H200); a thread may be late.
const DRAIN_EVERY: Seconds = Seconds::new(1.5);
const BUFFER_HOLDS: Seconds = Seconds::new(2.2);
/// A sensor as fast as this adds to the buffer's samples where there is no counter.
const FAST_SENSOR: Seconds = Seconds::new(0.05);
const BESIDE_EVERY: Seconds = Seconds::new(4.0);
/// A power sensor that only serves as a check.
const CHECK_EVERY: Seconds = Seconds::new(2.0);
/// A sensor that fails is tried again after this.
const PATIENCE: Seconds = Seconds::new(0.5);

/// Decides what is read when, and keeps what was read. Memory grows by about 0.9 kB per second and device
/// with the driver's buffer, 0.5 kB without, 16 kB when polled every 2 ms at a sensor of 20 ms.
#[derive(Debug)]
pub struct Recorder {
    device: DeviceId,
    trace: Trace,
    beside: Vec<Beside>,
    counter: Option<CounterPlan>,
    polls: Vec<PollPlan>,
    drain_at: Option<Moment>,
    drained_at: Option<Moment>,
    beside_at: Option<Moment>,
    failing: Vec<(SensorKind, Moment, GapReason)>,
    ended: bool,
}

impl Recorder {
    /// Begins at once.
    pub fn new(
        descriptor: &Descriptor,
        cap: Option<Watts>,
        choice: MethodChoice,
        now: Moment,
    ) -> Self {
        let has = |kind| descriptor.sensor(kind).is_some();
        let model = SensorModel::of(descriptor, cap);
        let wants_buffer = matches!(choice, MethodChoice::Auto | MethodChoice::Buffer)
            && has(SensorKind::BufferedPower);
        let wants_counter =
            !matches!(choice, MethodChoice::Poll(_)) && has(SensorKind::EnergyCounter);
        let usual = if has(SensorKind::AveragePower) {
            SensorKind::AveragePower
        } else {
            SensorKind::InstantPower
        };
        let period = model.period_of(usual);
        let mut polls = Vec::new();
        if has(usual) {
            polls.push(match choice {
                MethodChoice::Poll(every) => PollPlan::fixed(usual, every, period, now),
                // Beside something better a check is enough.
                _ if wants_buffer && (wants_counter || period > FAST_SENSOR) => {
                    PollPlan::fixed(usual, CHECK_EVERY, period, now)
                }
                _ => PollPlan::in_step(usual, period, now),
            });
        }
        let device = descriptor.id.clone();
        tracing::info!(
            %device, counter = wants_counter, buffer = wants_buffer, polled = %usual,
            method = ?choice, "power sensors chosen"
        );
        Self {
            device,
            trace: Trace {
                model,
                ..Trace::default()
            },
            beside: Vec::new(),
            counter: wants_counter.then(|| CounterPlan::new(model.counter_period, now)),
            polls,
            drain_at: wants_buffer.then_some(now),
            drained_at: None,
            beside_at: Some(now),
            failing: Vec::new(),
            ended: false,
        }
    }

    /// What is due next, and when; nothing where the device is gone.
    pub fn next(&self) -> Option<(Moment, Task)> {
        if self.ended {
            return None;
        }
        let counter = self
            .counter
            .as_ref()
            .map(|plan| (plan.due(), Task::Counter));
        let drain = self.drain_at.map(|at| (at, Task::Drain));
        let beside = self.beside_at.map(|at| (at, Task::Beside));
        let polls = self
            .polls
            .iter()
            .map(|plan| (plan.due(), Task::Poll(plan.sensor())));
        polls
            .chain(counter)
            .chain(drain)
            .chain(beside)
            .min_by_key(|(at, _)| *at)
    }

    /// A window begins or ends here: the counter is read on either side of it.
    pub fn mark(&mut self, at: Moment) {
        if let Some(plan) = &mut self.counter {
            plan.mark(at);
        }
    }

    /// Whether everything is there that a mark asks for.
    pub fn is_settled(&self) -> bool {
        self.ended || self.counter.as_ref().is_none_or(CounterPlan::is_settled)
    }

    /// Whether there is a buffer that has gathered something up to a window's end.
    pub fn reads_buffer(&self) -> bool {
        !self.ended && self.drain_at.is_some()
    }

    /// The counter was read.
    pub fn counted(&mut self, call: Span, result: Result<Joules, ReadError>) {
        let value = self.heed(SensorKind::EnergyCounter, call.end, result);
        let Some(plan) = &mut self.counter else {
            return;
        };
        match value {
            Some(value) => {
                plan.read(call, value);
                self.trace.counter.push(CounterReading { call, value });
            }
            None => plan.failed(call.end + PATIENCE),
        }
    }

    /// The buffer was drained.
    pub fn drained(&mut self, at: Moment, result: Result<Drained, ReadError>) {
        let Some(drained) = self.heed(SensorKind::BufferedPower, at, result) else {
            self.drain_at = self.drain_at.map(|_| at + PATIENCE);
            return;
        };
        if drained.clock_stepped {
            tracing::warn!(device = %self.device, "the wall clock was set");
            self.trace.clock_steps.push(at);
        }
        if let Some(before) = self.drained_at.filter(|before| at - *before > BUFFER_HOLDS) {
            let (device, late) = (&self.device, at - before);
            tracing::warn!(%device, %late, "power samples lost: the driver's buffer was read too late");
            self.trace.gaps.push(Gap {
                sensor: SensorKind::BufferedPower,
                span: Span::new(before, at + -BUFFER_HOLDS),
                reason: GapReason::Overrun,
            });
        }
        self.drained_at = Some(at);
        self.drain_at = self.drain_at.map(|_| at + DRAIN_EVERY);
        for reading in drained.readings {
            let Amount::Power(power) = reading.amount else {
                continue;
            };
            let sample = PowerSample {
                at: reading.at,
                power,
            };
            keep(&mut self.trace.buffer, sample);
        }
    }

    /// A power sensor was looked at.
    pub fn polled(&mut self, sensor: SensorKind, at: Moment, result: Result<Reading, ReadError>) {
        let reading = self.heed(sensor, at, result);
        let Some(plan) = self.polls.iter_mut().find(|plan| plan.sensor() == sensor) else {
            return;
        };
        let Some(Amount::Power(power)) = reading.map(|reading| reading.amount) else {
            plan.failed(at + PATIENCE);
            return;
        };
        if let Some(value) = plan.read(at, power) {
            match sensor {
                SensorKind::AveragePower => self.trace.average.push(value),
                _ => self.trace.instant.push(value),
            }
        }
    }

    /// What is kept beside power was read.
    pub fn looked_beside(&mut self, row: Beside) {
        self.beside_at = Some(row.at + BESIDE_EVERY);
        self.beside.push(row);
    }

    /// A failed read opens a gap, the next good one closes it; a lost device ends everything.
    fn heed<T>(
        &mut self,
        sensor: SensorKind,
        at: Moment,
        result: Result<T, ReadError>,
    ) -> Option<T> {
        let known = self.failing.iter().position(|(kind, ..)| *kind == sensor);
        match (result, known) {
            (Ok(value), Some(place)) => {
                let (sensor, since, reason) = self.failing.swap_remove(place);
                let span = Span::new(since, at);
                let (device, missing) = (&self.device, at - since);
                tracing::warn!(%device, %sensor, %missing, "sensor readings resumed");
                self.trace.gaps.push(Gap {
                    sensor,
                    span,
                    reason,
                });
                Some(value)
            }
            (Ok(value), None) => Some(value),
            (Err(error), known) => {
                let is_lost = error == ReadError::Lost;
                if known.is_none() {
                    let device = &self.device;
                    tracing::warn!(%device, %sensor, %error, "sensor readings failed");
                    let reason = if is_lost {
                        GapReason::Lost
                    } else {
                        GapReason::Failed
                    };
                    self.failing.push((sensor, at, reason));
                }
                self.ended |= is_lost;
                None
            }
        }
    }

    /// What was read so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// What was read beside power so far.
    pub fn beside(&self) -> &[Beside] {
        &self.beside
    }

    /// What was read so far; what fails now is a gap up to now.
    pub fn so_far(&self, now: Moment) -> (Trace, Vec<Beside>) {
        let mut trace = self.trace.clone();
        let open = self.failing.iter().map(|(sensor, since, reason)| Gap {
            sensor: *sensor,
            span: Span::new(*since, now.max(*since)),
            reason: *reason,
        });
        trace.gaps.extend(open);
        (trace, self.beside.clone())
    }

    /// Forgets what was read before a moment; how the sensors beat stays known.
    pub fn forget_before(&mut self, moment: Moment) {
        let trace = &mut self.trace;
        trace.counter.retain(|reading| reading.call.end >= moment);
        trace.buffer.retain(|sample| sample.at >= moment);
        for polled in [&mut trace.instant, &mut trace.average] {
            polled.retain(|value| value.appeared.end >= moment);
        }
        trace.gaps.retain(|gap| gap.span.end >= moment);
        trace.clock_steps.retain(|step| *step >= moment);
        self.beside.retain(|row| row.at >= moment);
    }

    /// Everything that was read.
    pub fn finish(self, now: Moment) -> (Trace, Vec<Beside>) {
        self.so_far(now)
    }
}

/// In order of time: one that comes late goes to its place, one that comes twice is dropped.
fn keep(samples: &mut Vec<PowerSample>, sample: PowerSample) {
    let place = samples.partition_point(|other| other.at < sample.at);
    if samples.get(place).is_none_or(|other| other.at != sample.at) {
        samples.insert(place, sample);
    }
}
