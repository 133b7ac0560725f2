//! Decides what to read next and stores the readings, without a thread or a clock of its own.

use sweetspot_device::{
    Amount, Descriptor, DeviceId, DrainedSamples, Moment, ReadError, Reading, SensorKind,
};
use sweetspot_quantity::{Joules, Seconds, Watts};

use super::auxiliary::AuxiliaryReadings;
use super::counter_plan::CounterPlan;
use super::limit_readings::LimitReadings;
use super::poll_plan::PollPlan;
use crate::math::{CounterReading, Gap, GapReason, PowerSample, SensorModel, Span, Trace};
use crate::method::MethodChoice;

/// A read of the device that is to be performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A read of the energy counter.
    Counter,
    /// A read of all new samples in the driver's buffer.
    Drain,
    /// A poll of a power sensor.
    Poll(SensorKind),
    /// A read of utilisation, clocks, temperature and throttle reasons.
    Auxiliary,
    /// A read of the counters that tell what limits the device.
    Limits,
}

/// The interval between reads of the driver's buffer. The buffer contains the last 2.3 s (H200), so a read
/// may be somewhat late.
const DRAIN_EVERY: Seconds = Seconds::new(1.5);
/// The time that the driver's buffer covers for certain; a later read has lost samples.
const BUFFER_LENGTH: Seconds = Seconds::new(2.2);
/// Without a counter, a power sensor is polled in addition to the buffer only if its update period is at most
/// this.
const MAX_FAST_PERIOD: Seconds = Seconds::new(0.05);
/// The interval between reads of utilisation, clocks, temperature and throttle reasons.
const AUXILIARY_EVERY: Seconds = Seconds::new(4.0);
/// In this time, the counters that tell what limits the device are read at most twice because of ends of windows, of which
/// there may be many. A read takes 0.41 ms on an H200, so that this costs 0.04 % of a core at most.
const TWO_LIMIT_READS: Seconds = Seconds::new(2.0);
/// The interval between the other reads of these counters, which show whether one was reset within a window. They cost
/// 0.02 % of a core.
const LIMITS_EVERY: Seconds = Seconds::new(2.0);
/// The interval between polls of a power sensor whose values only check those of another.
const CHECK_EVERY: Seconds = Seconds::new(2.0);
/// The time after a failed read until the sensor is read again.
const RETRY_AFTER: Seconds = Seconds::new(0.5);

/// Decides what to read and when, and stores the readings. Memory grows by about 0.9 kB per second and device
/// with the driver's buffer, 0.5 kB without, 16 kB when a sensor that updates every 20 ms is polled every 2 ms.
#[derive(Debug)]
pub struct Recorder {
    device: DeviceId,
    trace: Trace,
    auxiliary: Vec<AuxiliaryReadings>,
    limits: Vec<LimitReadings>,
    counter: Option<CounterPlan>,
    polls: Vec<PollPlan>,
    drain_at: Option<Moment>,
    drained_at: Option<Moment>,
    auxiliary_at: Option<Moment>,
    /// When the counters of limits are read for a window's end; `None` if they were read.
    limits_at: Option<Moment>,
    /// When the counters of limits are read next in any case.
    next_limits_at: Moment,
    /// The moments of the last two reads for ends of windows, the older one first.
    marked_limits: [Option<Moment>; 2],
    failing: Vec<(SensorKind, Moment, GapReason)>,
    ended: bool,
}

impl Recorder {
    /// Creates a recorder of one device; its first reads are due at once.
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
                // Next to a better source a check is enough.
                _ if wants_buffer && (wants_counter || period > MAX_FAST_PERIOD) => {
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
            auxiliary: Vec::new(),
            limits: Vec::new(),
            counter: wants_counter.then(|| CounterPlan::new(model.counter_period, now)),
            polls,
            drain_at: wants_buffer.then_some(now),
            drained_at: None,
            auxiliary_at: Some(now),
            limits_at: Some(now),
            next_limits_at: now + LIMITS_EVERY,
            marked_limits: [None; 2],
            failing: Vec::new(),
            ended: false,
        }
    }

    /// The next read and when it is due; `None` if the device is lost.
    pub fn next(&self) -> Option<(Moment, Task)> {
        if self.ended {
            return None;
        }
        let counter = self
            .counter
            .as_ref()
            .map(|plan| (plan.due(), Task::Counter));
        let drain = self.drain_at.map(|at| (at, Task::Drain));
        let auxiliary = self.auxiliary_at.map(|at| (at, Task::Auxiliary));
        let limits = Some((self.limits_due(), Task::Limits));
        let polls = self
            .polls
            .iter()
            .map(|plan| (plan.due(), Task::Poll(plan.sensor())));
        polls
            .chain(counter)
            .chain(drain)
            .chain(auxiliary)
            .chain(limits)
            .min_by_key(|(at, _)| *at)
    }

    /// When the counters that tell what limits the device are read next.
    pub fn limits_due(&self) -> Moment {
        let marked = self.limits_at.unwrap_or(self.next_limits_at);
        marked.min(self.next_limits_at)
    }

    /// Schedules reads of the counter just before and after this moment, at which a measurement window begins
    /// or ends, and a read of what limits the device.
    pub fn mark(&mut self, at: Moment) {
        if let Some(plan) = &mut self.counter {
            plan.mark(at);
        }
        self.mark_limits(at);
    }

    /// Marks a moment as [`Recorder::mark`] does. Marks that follow each other closely share reads of the counter.
    pub fn mark_sharing_reads(&mut self, at: Moment) {
        if let Some(plan) = &mut self.counter {
            plan.mark_sharing_reads(at);
        }
        self.mark_limits(at);
    }

    /// Schedules a read of what limits the device, unless there were some just now.
    fn mark_limits(&mut self, at: Moment) {
        let [last_but_one, _] = self.marked_limits;
        if last_but_one.is_none_or(|earlier| at - earlier >= TWO_LIMIT_READS) {
            self.limits_at = self.limits_at.or(Some(at));
        }
    }

    /// Whether all reads that [`Recorder::mark`] scheduled are done.
    pub fn is_settled(&self) -> bool {
        let is_read = self.counter.as_ref().is_none_or(CounterPlan::is_settled);
        self.ended || (is_read && self.limits_at.is_none())
    }

    /// Whether the driver's buffer is read.
    pub fn reads_buffer(&self) -> bool {
        !self.ended && self.drain_at.is_some()
    }

    /// Stores the result of a read of the counter.
    pub fn record_counter(&mut self, call: Span, result: Result<Joules, ReadError>) {
        let value = self.accept(SensorKind::EnergyCounter, call.end, result);
        let Some(plan) = &mut self.counter else {
            return;
        };
        match value {
            Some(value) => {
                plan.read(call, value);
                self.trace.counter.push(CounterReading { call, value });
            }
            None => plan.failed(call.end + RETRY_AFTER),
        }
    }

    /// Stores the samples read from the driver's buffer.
    pub fn record_drain(&mut self, at: Moment, result: Result<DrainedSamples, ReadError>) {
        let Some(drained) = self.accept(SensorKind::BufferedPower, at, result) else {
            self.drain_at = self.drain_at.map(|_| at + RETRY_AFTER);
            return;
        };
        if drained.clock_stepped {
            tracing::warn!(device = %self.device, "the wall clock was set");
            self.trace.clock_steps.push(at);
        }
        if let Some(before) = self
            .drained_at
            .filter(|before| at - *before > BUFFER_LENGTH)
        {
            let (device, late) = (&self.device, at - before);
            tracing::warn!(%device, %late, "power samples lost: the driver's buffer was read too late");
            self.trace.gaps.push(Gap {
                sensor: SensorKind::BufferedPower,
                span: Span::new(before, at + -BUFFER_LENGTH),
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
            insert_in_order(&mut self.trace.buffer, sample);
        }
    }

    /// Stores the result of a poll of a power sensor.
    pub fn record_poll(
        &mut self,
        sensor: SensorKind,
        at: Moment,
        result: Result<Reading, ReadError>,
    ) {
        let reading = self.accept(sensor, at, result);
        let Some(plan) = self.polls.iter_mut().find(|plan| plan.sensor() == sensor) else {
            return;
        };
        let Some(Amount::Power(power)) = reading.map(|reading| reading.amount) else {
            plan.failed(at + RETRY_AFTER);
            return;
        };
        if let Some(value) = plan.read(at, power) {
            match sensor {
                SensorKind::AveragePower => self.trace.average.push(value),
                _ => self.trace.instant.push(value),
            }
        }
    }

    /// Stores utilisation, clocks, temperature and throttle reasons.
    pub fn record_auxiliary(&mut self, row: AuxiliaryReadings) {
        self.auxiliary_at = Some(row.at + AUXILIARY_EVERY);
        self.auxiliary.push(row);
    }

    /// Stores the counters that tell what limits the device.
    pub fn record_limits(&mut self, row: LimitReadings) {
        if self.limits_at.take().is_some() {
            self.marked_limits = [self.marked_limits[1], Some(row.at)];
        }
        self.next_limits_at = row.at + LIMITS_EVERY;
        self.limits.push(row);
    }

    /// Returns the value of a successful read. A gap begins at a failed read and ends at the next successful
    /// one; if the device is lost, all reading ends.
    fn accept<T>(
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

    /// The power and energy readings so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The readings of utilisation, clocks, temperature and throttle reasons so far.
    pub fn auxiliary(&self) -> &[AuxiliaryReadings] {
        &self.auxiliary
    }

    /// The readings of what limits the device so far.
    pub fn limits(&self) -> &[LimitReadings] {
        &self.limits
    }

    /// A copy of the power, energy and auxiliary readings so far. Sensors whose reads fail at present have a gap up to `now`.
    pub fn snapshot(&self, now: Moment) -> (Trace, Vec<AuxiliaryReadings>) {
        let mut trace = self.trace.clone();
        let open = self.failing.iter().map(|(sensor, since, reason)| Gap {
            sensor: *sensor,
            span: Span::new(*since, now.max(*since)),
            reason: *reason,
        });
        trace.gaps.extend(open);
        (trace, self.auxiliary.clone())
    }

    /// Removes the readings before a moment. What was learnt about the sensors' update times stays.
    pub fn forget_before(&mut self, moment: Moment) {
        let trace = &mut self.trace;
        trace.counter.retain(|reading| reading.call.end >= moment);
        trace.buffer.retain(|sample| sample.at >= moment);
        for polled in [&mut trace.instant, &mut trace.average] {
            polled.retain(|value| value.appeared.end >= moment);
        }
        trace.gaps.retain(|gap| gap.span.end >= moment);
        trace.clock_steps.retain(|step| *step >= moment);
        self.auxiliary.retain(|row| row.at >= moment);
        self.limits.retain(|row| row.at >= moment);
    }
}

/// Inserts a sample in order of time, unless a sample with its time is stored already.
fn insert_in_order(samples: &mut Vec<PowerSample>, sample: PowerSample) {
    let place = samples.partition_point(|other| other.at < sample.at);
    if samples.get(place).is_none_or(|other| other.at != sample.at) {
        samples.insert(place, sample);
    }
}
