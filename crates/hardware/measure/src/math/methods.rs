//! One function for each way to come to a window's energy.

use sweetspot_device::SensorKind;
use sweetspot_quantity::{Joules, Seconds};

use super::alias::unseen;
use super::energy::{Energy, EnergyError, Note};
use super::evidence::Evidence;
use super::fit::UNCALIBRATED;
use super::process::Process;
use super::readings::{PolledPower, Span, WindowSensor};
use super::window::{Ledger, MARGIN, nothing, widen, within};
use crate::method::Method;

/// Of samples that no counter confirms: the buffer's gain against the counter's (H200: -1.4 to +0.3 %).
const GAIN_DEVIATION: f64 = 0.003;
/// The energy between a window's end and the nearest value's, against the most that it may be off.
const BLIND: f64 = 0.2;
/// What is left of a part-time sensor's error in step with the load beside the buffer's samples.
const IN_STEP: f64 = 0.1;
/// A sensor of short windows with this period or less adds to the buffer's samples.
const FAST_SENSOR: Seconds = Seconds::new(0.05);

/// Power is not quite the process that it is taken for.
const MODEL: f64 = 1.25;

impl Ledger<'_> {
    /// The counter for the bulk, samples for the ends; either alone where the other is missing.
    pub(super) fn counter_and_buffer(&self, window: &Span) -> Result<Energy, EnergyError> {
        let around = self.around(window);
        let samples = within(&self.trace.buffer, &around, |sample| sample.at);
        let knots = within(&self.knots.knots, &around, |knot| knot.at());
        if samples.len() < 2 {
            return self.counter(window);
        }
        if knots.len() < 2 {
            return self.buffer_and_instant(window);
        }
        let seen = [
            Span::new(samples[0].at, samples[samples.len() - 1].at),
            Span::new(knots[0].at(), knots[knots.len() - 1].at()),
        ];
        let (covered, trimmed) = self.covered(window, &seen)?;
        let mut evidence = Evidence::new(around.begin);
        evidence.samples(samples, &self.response, 1.0, UNCALIBRATED);
        evidence.knots(knots);
        let mut energy = self.judge(evidence, &covered, Method::CounterAndBuffer);
        energy.inflate(MODEL);
        widen(&mut energy, self.timing());
        energy.missing = self.missing(
            &[SensorKind::EnergyCounter, SensorKind::BufferedPower],
            &covered,
        );
        energy.notes.extend(trimmed);
        Ok(energy)
    }

    /// The counter alone: between its moves power is taken to be anything that the device may draw.
    pub(super) fn counter(&self, window: &Span) -> Result<Energy, EnergyError> {
        let around = self.around(window);
        let knots = within(&self.knots.knots, &around, |knot| knot.at());
        let (Some(first), Some(last)) = (knots.first(), knots.last()) else {
            return Err(nothing("counter readings", window));
        };
        if knots.len() < 2 {
            return Err(nothing("counter readings", window));
        }
        let (covered, trimmed) = self.covered(window, &[Span::new(first.at(), last.at())])?;
        let known = knots.windows(2).filter(|pair| pair[0].run == pair[1].run);
        let (drawn, time) = known.fold((Joules::ZERO, Seconds::ZERO), |(drawn, time), pair| {
            let (from, to) = (&pair[0], &pair[1]);
            (
                drawn + (to.energy - from.energy),
                time + (to.at() - from.at()),
            )
        });
        if time <= Seconds::ZERO {
            return Err(nothing("counter readings", window));
        }
        let mean = drawn / time;
        let spacing = |moment| match self.knots.around(moment) {
            (Some(before), Some(after)) => (after.at() - before.at()).get(),
            _ => covered.length().get(),
        };
        let widest = spacing(covered.begin).max(spacing(covered.end));
        let process = Process {
            mean: mean.get(),
            deviation: self.range.two_levels(mean.get()),
            // Changes that spread over the gap between two moves would have been seen in others.
            memory: (0.25 * widest).max(0.004),
            response: self.response.time_constant.get(),
        };
        let mut evidence = Evidence::new(around.begin);
        evidence.knots(knots);
        evidence.window(&covered);
        evidence.sort();
        let outcome = evidence.run(&process, 1.0, None);
        let mut energy = self.value(&outcome, &covered, Method::Counter, 0.0);
        widen(&mut energy, self.timing());
        energy.missing = self.missing(&[SensorKind::EnergyCounter], &covered);
        self.widen_for_resets(&mut energy);
        energy.notes.extend(trimmed);
        Ok(energy)
    }

    /// The buffer alone.
    pub(super) fn buffer(&self, window: &Span) -> Result<Energy, EnergyError> {
        let around = Span::new(window.begin + -MARGIN, window.end + MARGIN);
        let samples = within(&self.trace.buffer, &around, |sample| sample.at);
        if samples.len() < 2 {
            return Err(nothing("samples of the driver's buffer", window));
        }
        let seen = Span::new(samples[0].at, samples[samples.len() - 1].at);
        let (covered, trimmed) = self.covered(window, &[seen])?;
        let mut evidence = Evidence::new(around.begin);
        evidence.samples(samples, &self.response, 1.0, 0.0);
        let mut energy = self.judge(evidence, &covered, Method::Buffer);
        energy.inflate(MODEL);
        widen(&mut energy, GAIN_DEVIATION);
        energy.missing = self.missing(&[SensorKind::BufferedPower], &covered);
        energy.notes.extend(trimmed);
        Ok(energy)
    }

    /// Without a counter: samples, and the short windows of a sensor that sees half of the time or more.
    fn buffer_and_instant(&self, window: &Span) -> Result<Energy, EnergyError> {
        let sensor = &self.trace.model.instant;
        let is_good = sensor.window >= sensor.period * 0.5 && sensor.period <= FAST_SENSOR;
        let values = self.polled(&self.trace.instant, sensor, window);
        let Some(values) = values.filter(|_| is_good) else {
            return self.buffer(window);
        };
        let around = Span::new(window.begin + -MARGIN, window.end + MARGIN);
        let samples = within(&self.trace.buffer, &around, |sample| sample.at);
        let seen = Span::new(samples[0].at, samples[samples.len() - 1].at);
        let (covered, trimmed) = self.covered(window, &[seen])?;
        let mut evidence = Evidence::new(around.begin);
        evidence.samples(samples, &self.response, 1.0, 0.0);
        evidence.windows(values, sensor);
        let mut energy = self.judge(evidence, &covered, Method::BufferAndPoll);
        energy.inflate(MODEL);
        widen(&mut energy, GAIN_DEVIATION);
        // A load in step with the sensor misleads it again and again, if less than the sensor alone.
        let hidden = unseen(values, sensor, &covered, &self.range).deviation;
        let part = IN_STEP * hidden / energy.value.get().max(1e-9);
        widen(&mut energy, part);
        let alone = self.buffer(window)?;
        if alone.deviation() < energy.deviation() {
            return Ok(alone);
        }
        energy.missing = self.missing(&[SensorKind::BufferedPower], &covered);
        energy.notes.extend(trimmed);
        Ok(energy)
    }

    /// A power sensor that was looked at: the one that sees the larger part of the time.
    pub(super) fn poll(&self, window: &Span) -> Result<Energy, EnergyError> {
        let model = &self.trace.model;
        let average = self.polled(&self.trace.average, &model.average, window);
        let instant = self.polled(&self.trace.instant, &model.instant, window);
        let (values, sensor, method, kind) = match (average, instant) {
            (Some(values), _) => (
                values,
                model.average,
                Method::PollAverage,
                SensorKind::AveragePower,
            ),
            (None, Some(values)) => (
                values,
                model.instant,
                Method::PollInstant,
                SensorKind::InstantPower,
            ),
            (None, None) => return Err(nothing("power readings", window)),
        };
        let reach = sensor.window + sensor.lag;
        let first = values[0].appeared.end + -reach;
        let last = values[values.len() - 1].appeared.end + -sensor.lag;
        let (covered, trimmed) = self.covered(window, &[Span::new(first, last)])?;
        let mut evidence = Evidence::new(first + -MARGIN);
        evidence.windows(values, &sensor);
        let mut energy = self.judge(evidence, &covered, method);
        // Within a value's window power may have been anything with that mean.
        let blind = sensor.period.get().max(sensor.window.get() / 4.0);
        let spread = self.range.two_levels(energy.power().get());
        let edges = 2f64.sqrt() * BLIND * blind * spread;
        let part = edges / energy.value.get().max(1e-9);
        widen(&mut energy, part);
        let unseen = unseen(values, &sensor, &covered, &self.range);
        if let Some(share) = unseen.share {
            let part = unseen.deviation / energy.value.get().max(1e-9);
            widen(&mut energy, part);
            energy.notes.push(Note::Partial(share));
        }
        energy.missing = self.missing(&[kind], &covered);
        energy.notes.extend(trimmed);
        Ok(energy)
    }

    fn polled<'b>(
        &self,
        values: &'b [PolledPower],
        sensor: &WindowSensor,
        window: &Span,
    ) -> Option<&'b [PolledPower]> {
        let after = sensor.window + sensor.lag + MARGIN;
        let around = Span::new(window.begin + -MARGIN, window.end + after);
        let values = within(values, &around, |value| value.appeared.end);
        (values.len() > 1).then_some(values)
    }
}
