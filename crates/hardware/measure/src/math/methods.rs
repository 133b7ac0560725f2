//! The methods to estimate the energy of a measurement window, one function each.

use sweetspot_device::SensorKind;
use sweetspot_quantity::{Joules, Seconds};

use super::aliasing::aliasing_error;
use super::energy::{Energy, EnergyError, Note};
use super::estimator::{CONTEXT, EnergyEstimator, no_readings, widen, within};
use super::fit_process::CORRECTED_GAIN_DEVIATION;
use super::observations::Observations;
use super::power_process::PowerProcess;
use super::readings::{PolledPower, Span, WindowSensor};
use crate::method::Method;

/// The relative standard deviation of the driver buffer's gain error, if no energy counter corrects it. The
/// error measured on H200s was -1.4 to +0.3 %.
const UNCORRECTED_GAIN_DEVIATION: f64 = 0.003;
/// The assumed error at the beginning and end of the measurement window, as a fraction of the largest
/// possible error.
const EDGE_ERROR_SHARE: f64 = 0.2;
/// The fraction of a polled sensor's aliasing error that remains when its values are combined with the
/// buffer's samples.
const REMAINING_ALIASING: f64 = 0.1;
/// [`SensorKind::InstantPower`] is combined with the buffer's samples only if its update period is at most
/// this.
const MAX_FAST_PERIOD: Seconds = Seconds::new(0.05);

/// 95 % intervals are widened by this factor, because power follows the modelled random process only
/// approximately.
const MODEL_INFLATION: f64 = 1.25;

impl EnergyEstimator<'_> {
    /// Estimates the energy from the counter's steps, and at both ends of the measurement window from the
    /// buffer's samples. If one of the two sensors has no readings, the other is used alone.
    pub(super) fn counter_and_buffer(&self, window: &Span) -> Result<Energy, EnergyError> {
        let around = self.with_context(window);
        let samples = within(&self.trace.buffer, &around, |sample| sample.at);
        let steps = within(&self.steps.steps, &around, |step| step.at());
        if samples.len() < 2 {
            return self.counter(window);
        }
        if steps.len() < 2 {
            return self.buffer_and_instant(window);
        }
        let seen = [
            Span::new(samples[0].at, samples[samples.len() - 1].at),
            Span::new(steps[0].at(), steps[steps.len() - 1].at()),
        ];
        let (covered, trimmed) = self.trim_to_readings(window, &seen)?;
        let mut observations = Observations::new(around.begin);
        observations.add_samples(samples, &self.response, CORRECTED_GAIN_DEVIATION);
        observations.add_steps(steps);
        let mut energy = self.estimate(observations, &covered, Method::CounterAndBuffer);
        energy.inflate(MODEL_INFLATION);
        energy.gain_deviation = energy.gain_deviation * MODEL_INFLATION;
        widen(&mut energy, self.timing_deviation());
        energy.missing = self.gaps_within(
            &[SensorKind::EnergyCounter, SensorKind::BufferedPower],
            &covered,
        );
        energy.notes.extend(trimmed);
        Ok(energy)
    }

    /// Estimates the energy from the counter alone. Between the window's ends and the nearest steps, power
    /// may have any value in the device's range.
    pub(super) fn counter(&self, window: &Span) -> Result<Energy, EnergyError> {
        let around = self.with_context(window);
        let steps = within(&self.steps.steps, &around, |step| step.at());
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
            return Err(no_readings("counter readings", window));
        };
        if steps.len() < 2 {
            return Err(no_readings("counter readings", window));
        }
        let (covered, trimmed) =
            self.trim_to_readings(window, &[Span::new(first.at(), last.at())])?;
        let known = steps.windows(2).filter(|pair| pair[0].run == pair[1].run);
        let (drawn, time) = known.fold((Joules::ZERO, Seconds::ZERO), |(drawn, time), pair| {
            let (from, to) = (&pair[0], &pair[1]);
            (
                drawn + (to.energy - from.energy),
                time + (to.at() - from.at()),
            )
        });
        if time <= Seconds::ZERO {
            return Err(no_readings("counter readings", window));
        }
        let mean = drawn / time;
        let spacing = |moment| match self.steps.around(moment) {
            (Some(before), Some(after)) => (after.at() - before.at()).get(),
            _ => covered.length().get(),
        };
        let widest = spacing(covered.begin).max(spacing(covered.end));
        let process = PowerProcess {
            mean: mean.get(),
            deviation: self.range.two_level_deviation(mean.get()),
            // Slower changes would have shown in the neighbouring steps.
            correlation_time: (0.25 * widest).max(0.004),
            response: self.response.time_constant.get(),
        };
        let mut observations = Observations::new(around.begin);
        observations.add_steps(steps);
        observations.set_window(&covered);
        observations.sort();
        let outcome = observations.run(&process, 1.0, None);
        let mut energy = self.energy_from(&outcome, &covered, Method::Counter, 0.0);
        widen(&mut energy, self.timing_deviation());
        energy.missing = self.gaps_within(&[SensorKind::EnergyCounter], &covered);
        self.widen_for_resets(&mut energy);
        energy.notes.extend(trimmed);
        Ok(energy)
    }

    /// Estimates the energy from the samples of the driver's buffer alone.
    pub(super) fn buffer(&self, window: &Span) -> Result<Energy, EnergyError> {
        let around = Span::new(window.begin + -CONTEXT, window.end + CONTEXT);
        let samples = within(&self.trace.buffer, &around, |sample| sample.at);
        if samples.len() < 2 {
            return Err(no_readings("samples of the driver's buffer", window));
        }
        let seen = Span::new(samples[0].at, samples[samples.len() - 1].at);
        let (covered, trimmed) = self.trim_to_readings(window, &[seen])?;
        let mut observations = Observations::new(around.begin);
        observations.add_samples(samples, &self.response, 0.0);
        let mut energy = self.estimate(observations, &covered, Method::Buffer);
        energy.inflate(MODEL_INFLATION);
        widen(&mut energy, UNCORRECTED_GAIN_DEVIATION);
        energy.gain_deviation = energy.value * UNCORRECTED_GAIN_DEVIATION;
        energy.missing = self.gaps_within(&[SensorKind::BufferedPower], &covered);
        energy.notes.extend(trimmed);
        Ok(energy)
    }

    /// Estimates the energy without a counter: from the buffer's samples, and from the instantaneous power
    /// sensor if that sensor measures at least half of the time.
    fn buffer_and_instant(&self, window: &Span) -> Result<Energy, EnergyError> {
        let sensor = &self.trace.model.instant;
        let is_good = sensor.window >= sensor.period * 0.5 && sensor.period <= MAX_FAST_PERIOD;
        let values = self.polled_values_for(&self.trace.instant, sensor, window);
        let Some(values) = values.filter(|_| is_good) else {
            return self.buffer(window);
        };
        let around = Span::new(window.begin + -CONTEXT, window.end + CONTEXT);
        let samples = within(&self.trace.buffer, &around, |sample| sample.at);
        if samples.len() < 2 {
            return Err(no_readings("samples of the driver's buffer", window));
        }
        let seen = Span::new(samples[0].at, samples[samples.len() - 1].at);
        let (covered, trimmed) = self.trim_to_readings(window, &[seen])?;
        let mut observations = Observations::new(around.begin);
        observations.add_samples(samples, &self.response, 0.0);
        observations.add_window_means(values, sensor);
        let mut energy = self.estimate(observations, &covered, Method::BufferAndPoll);
        energy.inflate(MODEL_INFLATION);
        widen(&mut energy, UNCORRECTED_GAIN_DEVIATION);
        energy.gain_deviation = energy.value * UNCORRECTED_GAIN_DEVIATION;
        // A load in step with the sensor biases it in every period, though less than it biases the sensor
        // alone.
        let hidden = aliasing_error(values, sensor, &covered, &self.range).deviation;
        let part = REMAINING_ALIASING * hidden / energy.value.get().max(1e-9);
        widen(&mut energy, part);
        let alone = self.buffer(window)?;
        if alone.deviation() < energy.deviation() {
            return Ok(alone);
        }
        energy.missing = self.gaps_within(&[SensorKind::BufferedPower], &covered);
        energy.notes.extend(trimmed);
        Ok(energy)
    }

    /// Estimates the energy from the values of one polled power sensor: the sensor that measures the larger
    /// part of the time.
    pub(super) fn poll(&self, window: &Span) -> Result<Energy, EnergyError> {
        let model = &self.trace.model;
        let average = self.polled_values_for(&self.trace.average, &model.average, window);
        let instant = self.polled_values_for(&self.trace.instant, &model.instant, window);
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
            (None, None) => return Err(no_readings("power readings", window)),
        };
        let reach = sensor.window + sensor.lag;
        let first = values[0].appeared.end + -reach;
        let last = values[values.len() - 1].appeared.end + -sensor.lag;
        let (covered, trimmed) = self.trim_to_readings(window, &[Span::new(first, last)])?;
        let mut observations = Observations::new(first + -CONTEXT);
        observations.add_window_means(values, &sensor);
        let mut energy = self.estimate(observations, &covered, method);
        // Within a value's window power can have had any course with that mean.
        let blind = sensor.period.get().max(sensor.window.get() / 4.0);
        let spread = self.range.two_level_deviation(energy.power().get());
        let edges = 2f64.sqrt() * EDGE_ERROR_SHARE * blind * spread;
        let part = edges / energy.value.get().max(1e-9);
        widen(&mut energy, part);
        let aliasing_error = aliasing_error(values, &sensor, &covered, &self.range);
        if let Some(share) = aliasing_error.share {
            let part = aliasing_error.deviation / energy.value.get().max(1e-9);
            widen(&mut energy, part);
            energy.notes.push(Note::Partial(share));
        }
        energy.missing = self.gaps_within(&[kind], &covered);
        energy.notes.extend(trimmed);
        Ok(energy)
    }

    /// The values of a polled sensor that concern the measurement window; `None` if there are fewer than two.
    fn polled_values_for<'b>(
        &self,
        values: &'b [PolledPower],
        sensor: &WindowSensor,
        window: &Span,
    ) -> Option<&'b [PolledPower]> {
        let after = sensor.window + sensor.lag + CONTEXT;
        let around = Span::new(window.begin + -CONTEXT, window.end + after);
        let values = within(values, &around, |value| value.appeared.end);
        (values.len() > 1).then_some(values)
    }
}
