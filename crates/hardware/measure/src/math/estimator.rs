//! Estimates the energy of a window from the readings of a device.

use sweetspot_device::{Moment, SensorKind};
use sweetspot_quantity::{Joules, Ratio, Seconds};

use super::aliasing::PowerRange;
use super::counter_steps::CounterSteps;
use super::energy::{Check, CheckedEnergy, Energy, EnergyError, Note, Z95};
use super::fit_process::{CORRECTED_GAIN_DEVIATION, FittedProcess, fit_process, fit_response};
use super::integrate::{Integral, find_holes};
use super::observations::{Observations, Outcome};
use super::power_process::PowerProcess;
use super::readings::{Gap, GapReason, Response, Span, Trace};
use crate::method::{Method, MethodChoice};

/// Readings up to this long before and after a measurement window are also used to estimate its energy.
pub(super) const CONTEXT: Seconds = Seconds::new(1.5);
/// If two buffer samples are farther apart than this, samples between them are missing. The driver itself
/// leaves at most 46 ms between samples (H200).
const MAX_SAMPLE_GAP: Seconds = Seconds::new(0.08);

/// The counter corrects the gain of the driver's buffer by steps that are at least this far apart.
const MIN_CORRECTING_SPAN: Seconds = Seconds::new(1.0);

/// The assumed relative standard deviation of a clock's rate.
pub(super) const CLOCK_DEVIATION: f64 = 1e-4;

/// Estimates the energy of measurement windows from the readings of one device.
#[derive(Clone, Debug)]
pub struct EnergyEstimator<'a> {
    pub(super) trace: &'a Trace,
    pub(super) steps: CounterSteps,
    pub(super) range: PowerRange,
    pub(super) response: Response,
    /// The random process of all windows; it is fitted to each of them if `None`.
    fit: Option<ReadingsFit>,
}

/// What was fitted to the readings of a device: the random process of power, and the response of the driver's buffer. Most
/// of the time of an estimate goes into it, and it holds for some seconds, unless the load changes.
#[derive(Clone, Debug)]
pub struct ReadingsFit {
    process: FittedProcess,
    response: Response,
    /// The mean and the standard deviation of the samples of the driver's buffer that it was fitted to, in watts.
    spread: (f64, f64),
}

/// A fit no longer holds if the mean power differs by more than this share, or its deviation by more than the factor.
const MAX_MEAN_CHANGE: f64 = 0.1;
const MAX_DEVIATION_CHANGE: f64 = 1.5;

/// The mean and the standard deviation of the samples of the driver's buffer within a span, in watts.
fn spread(trace: &Trace, span: &Span) -> Option<(f64, f64)> {
    let samples = within(&trace.buffer, span, |sample| sample.at);
    if samples.len() < MIN_FITTED_SAMPLES {
        return None;
    }
    let count = samples.len() as f64;
    let powers = || samples.iter().map(|sample| sample.power.get());
    let mean = powers().sum::<f64>() / count;
    let square = powers().map(|power| (power - mean).powi(2)).sum::<f64>();
    Some((mean, (square / count).sqrt()))
}

/// The fewest samples of the driver's buffer to which a random process is fitted that several windows share.
const MIN_FITTED_SAMPLES: usize = 50;

impl<'a> EnergyEstimator<'a> {
    /// Creates the estimator, and finds the steps of the energy counter in the readings.
    pub fn new(trace: &'a Trace) -> Self {
        let steps = Self::find_steps(trace);
        Self {
            range: PowerRange::from_readings(trace, &steps),
            response: fit_response(trace, &steps.steps),
            steps,
            trace,
            fit: None,
        }
    }

    /// Finds the steps of the energy counter in the readings.
    fn find_steps(trace: &Trace) -> CounterSteps {
        let model = &trace.model;
        let mut steps = CounterSteps::from_readings(
            &trace.counter,
            model.counter_period,
            model.counter_modulus,
        );
        steps.correct_by_power(model.counter_modulus, |span| {
            let integral = Integral::of(&trace.buffer, &model.response, span, MAX_SAMPLE_GAP);
            (integral.covered >= span.length() * 0.9).then_some(integral.energy)
        });
        steps
    }

    /// Creates the estimator as [`Self::new`] does, with what was fitted to readings a little earlier.
    pub fn with_fit(trace: &'a Trace, fit: &ReadingsFit) -> Self {
        let steps = Self::find_steps(trace);
        Self {
            range: PowerRange::from_readings(trace, &steps),
            response: fit.response,
            steps,
            trace,
            fit: Some(fit.clone()),
        }
    }

    /// Whether the samples of the driver's buffer from which a window is estimated are like those of the fit.
    pub fn fit_holds(&self, window: &Span) -> bool {
        let spreads = self.fit.as_ref().map(|fit| fit.spread);
        let spreads = spreads.zip(spread(self.trace, &self.with_context(window)));
        spreads.is_some_and(|((mean, deviation), (other_mean, other_deviation))| {
            // Where power hardly varies, a change of its deviation within the sensor's resolution says nothing.
            let least = 0.01 * mean;
            let ratio = (other_deviation + least) / (deviation + least);
            (other_mean - mean).abs() <= MAX_MEAN_CHANGE * mean
                && (1.0 / MAX_DEVIATION_CHANGE..=MAX_DEVIATION_CHANGE).contains(&ratio)
        })
    }

    /// Fits the random process of power to all readings from which a window is estimated, for the estimates of its parts;
    /// `None` if there are too few samples of the driver's buffer.
    pub fn fit(&self, window: &Span) -> Option<ReadingsFit> {
        let around = self.with_context(window);
        let spread = spread(self.trace, &around)?;
        let samples = within(&self.trace.buffer, &around, |sample| sample.at);
        let steps = within(&self.steps.steps, &around, |step| step.at());
        let mut observations = Observations::new(around.begin);
        observations.add_samples(samples, &self.response, CORRECTED_GAIN_DEVIATION);
        observations.add_steps(steps);
        observations.sort();
        let response = self.response.time_constant.get();
        Some(ReadingsFit {
            process: fit_process(&observations, response)?,
            response: self.response,
            spread,
        })
    }

    /// The readings from which energies are estimated.
    pub fn trace(&self) -> &Trace {
        self.trace
    }

    /// The steps of the energy counter.
    pub fn steps(&self) -> &CounterSteps {
        &self.steps
    }

    /// Estimates the energy of a measurement window by the chosen method.
    pub fn energy(&self, window: &Span, choice: MethodChoice) -> Result<Energy, EnergyError> {
        if window.end <= window.begin {
            return Err(EnergyError::Empty(window.length()));
        }
        let energy = match choice {
            MethodChoice::Auto => self
                .counter_and_buffer(window)
                .or_else(|_| self.poll(window)),
            MethodChoice::Counter if self.steps.steps.len() < 2 => {
                Err(no_readings("counter readings", window))
            }
            MethodChoice::Counter => self.counter_and_buffer(window),
            MethodChoice::Buffer => self.buffer(window),
            MethodChoice::Poll(_) => self.poll(window),
        };
        Ok(self.widen_for_power_steps(energy?, choice))
    }

    /// Estimates the energy of a measurement window by the chosen method, and by the other methods as checks.
    pub fn measure(
        &self,
        window: &Span,
        choice: MethodChoice,
    ) -> Result<CheckedEnergy, EnergyError> {
        let energy = self.energy(window, choice)?;
        let others = [self.counter(window), self.buffer(window), self.poll(window)];
        let checks = others
            .into_iter()
            .flatten()
            .map(|other| self.widen_for_power_steps(other, choice))
            .filter(|other| other.method != energy.method)
            .filter_map(|other| Check::compare(other, &energy))
            .collect();
        Ok(CheckedEnergy { energy, checks })
    }

    /// Fits the random process of power to the observations and estimates the energy with the Kalman filter.
    pub(super) fn estimate(
        &self,
        mut observations: Observations,
        covered: &Span,
        method: Method,
    ) -> Energy {
        observations.set_window(covered);
        observations.sort();
        let response = self.response.time_constant.get();
        let shared = self.fit.as_ref().map(|fit| fit.process.clone());
        let fitted = shared.or_else(|| fit_process(&observations, response));
        let (fitted, is_known) = match fitted {
            Some(fitted) => (fitted.with_local_scales(&observations), true),
            None => (self.conservative_process(&observations, response), false),
        };
        let outcome = observations.run(&fitted.process, fitted.noise, fitted.scales.as_deref());
        let mut energy = self.energy_from(&outcome, covered, method, 0.0);
        if !is_known {
            energy.notes.push(Note::FewReadings);
        }
        if self.trace.clock_steps.iter().any(|at| inside(covered, *at)) {
            energy.notes.push(Note::ClockStepped);
        }
        energy
    }

    /// The random process that is assumed if there are too few readings to fit one: power jumps over the
    /// device's whole range.
    fn conservative_process(&self, observations: &Observations, response: f64) -> FittedProcess {
        let mean = observations
            .spread()
            .map_or(self.range.middle(), |(mean, _)| mean);
        FittedProcess {
            process: PowerProcess {
                mean,
                deviation: self.range.two_level_deviation(mean),
                correlation_time: 0.05,
                response,
            },
            noise: 1.0,
            scales: None,
        }
    }

    /// Creates the energy value from the filter's result; `extra` is added to its variance, in joules
    /// squared.
    pub(super) fn energy_from(
        &self,
        outcome: &Outcome,
        covered: &Span,
        method: Method,
        extra: f64,
    ) -> Energy {
        let half = Z95 * (outcome.variance + extra).sqrt();
        let value = Joules::new(outcome.energy.max(0.0));
        Energy {
            value,
            interval95: (
                (value - Joules::new(half)).max(Joules::ZERO),
                value + Joules::new(half),
            ),
            method,
            covered: *covered,
            missing: Vec::new(),
            notes: Vec::new(),
            gain_deviation: Joules::new(
                outcome.offset_variance.sqrt() * covered.length().get().max(0.0),
            ),
        }
    }

    /// The relative standard deviation of the counter's update period, combined with [`CLOCK_DEVIATION`].
    pub(super) fn timing_deviation(&self) -> f64 {
        let period_deviation = self.steps.period_deviation.map_or(0.0, Ratio::get);
        period_deviation.hypot(CLOCK_DEVIATION)
    }

    /// Widens the interval by the energy that the counter lost in resets, which is unknown.
    pub(super) fn widen_for_resets(&self, energy: &mut Energy) {
        let resets = energy.missing.iter();
        let lost: f64 = resets
            .filter(|gap| gap.reason == GapReason::Reset)
            .map(|gap| gap.span.length().get())
            .sum();
        let part = lost * self.range.width() / 12f64.sqrt() / energy.value.get().max(1e-9);
        if part > 0.0 {
            widen(energy, part);
        }
    }

    /// Extends a measurement window by [`CONTEXT`] and to the counter's steps before and after it.
    pub(super) fn with_context(&self, window: &Span) -> Span {
        let (mut begin, mut end) = (window.begin + -CONTEXT, window.end + CONTEXT);
        if let Some(step) = self.steps.around(window.begin).0 {
            begin = begin.min(step.at());
        }
        match self.steps.around(window.end) {
            (_, Some(step)) => end = end.max(step.at()),
            // The counter has not been read since: what it said before corrects the driver's buffer.
            (Some(last), None) => {
                let earlier = last.at() + -MIN_CORRECTING_SPAN;
                let step = self.steps.around(earlier).0.or(self.steps.steps.first());
                begin = step.map_or(begin, |step| begin.min(step.at()));
            }
            (None, None) => {}
        }
        Span::new(begin, end)
    }

    /// The part of the measurement window that has readings, allowing for the usual time between two
    /// readings. The note says what was cut off.
    pub(super) fn trim_to_readings(
        &self,
        window: &Span,
        seen: &[Span],
    ) -> Result<(Span, Option<Note>), EnergyError> {
        let begin = seen.iter().map(|span| span.begin + -MAX_SAMPLE_GAP).min();
        let end = seen.iter().map(|span| span.end + MAX_SAMPLE_GAP).max();
        let (begin, end) = begin
            .zip(end)
            .ok_or_else(|| no_readings("readings", window))?;
        let covered = window
            .overlap(&Span::new(begin, end))
            .ok_or_else(|| no_readings("readings", window))?;
        let note = (covered != *window).then(|| Note::Trimmed {
            begin: covered.begin - window.begin,
            end: window.end - covered.end,
        });
        Ok((covered, note))
    }

    /// The gaps in the readings of these sensors within a time span.
    pub(super) fn gaps_within(&self, sensors: &[SensorKind], within: &Span) -> Vec<Gap> {
        let known = self.trace.gaps.iter().chain(&self.steps.gaps);
        let mut missing: Vec<Gap> = known
            .filter(|gap| sensors.contains(&gap.sensor))
            .filter_map(|gap| {
                let span = gap.span.overlap(within)?;
                Some(Gap { span, ..*gap })
            })
            .collect();
        if sensors.contains(&SensorKind::BufferedPower) {
            let silent = find_holes(&self.trace.buffer, within, MAX_SAMPLE_GAP);
            missing.extend(silent.into_iter().filter_map(|span| {
                let is_new = !self.trace.gaps.iter().any(|gap| {
                    gap.sensor == SensorKind::BufferedPower && gap.span.overlap(&span).is_some()
                });
                is_new.then_some(Gap {
                    sensor: SensorKind::BufferedPower,
                    span,
                    reason: GapReason::NotRead,
                })
            }));
        }
        missing
    }
}

/// Whether a moment lies within a span.
fn inside(span: &Span, moment: Moment) -> bool {
    span.begin <= moment && moment <= span.end
}

/// The items whose time, given by `at`, lies within a span. The items must be sorted by time.
pub(super) fn within<'a, T>(sorted: &'a [T], span: &Span, at: impl Fn(&T) -> Moment) -> &'a [T] {
    let begin = sorted.partition_point(|item| at(item) < span.begin);
    let end = sorted.partition_point(|item| at(item) <= span.end);
    &sorted[begin..end.max(begin)]
}

/// Widens the 95 % interval by an independent error whose standard deviation is `part` of the value.
pub(super) fn widen(energy: &mut Energy, part: f64) {
    let more = part * energy.value.get();
    let half = Joules::new(Z95 * energy.deviation().get().hypot(more));
    energy.interval95 = ((energy.value - half).max(Joules::ZERO), energy.value + half);
}

/// The error that the measurement window has no readings of the kind `what`.
pub(super) fn no_readings(what: &'static str, window: &Span) -> EnergyError {
    EnergyError::NoReadings {
        what,
        window: window.length(),
    }
}
