//! Fits the power process and the buffer's response to the readings.

use sweetspot_quantity::Seconds;

use super::counter_steps::CounterStep;
use super::observations::Observations;
use super::power_process::PowerProcess;
use super::readings::{Response, Trace};

/// The random process fitted to the readings of power, with their noise.
#[derive(Clone, Debug)]
pub(crate) struct FittedProcess {
    pub process: PowerProcess,
    /// The standard deviation of the noise of a power reading, in watts.
    pub noise: f64,
    pub scales: Option<Vec<f64>>,
}

/// Candidate correlation times of power, in seconds.
const CORRELATION_TIMES: [f64; 10] = [0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.2, 0.5, 1.5, 5.0];
/// Candidate noise levels of a power reading, relative to the mean power. Larger deviations are not noise:
/// power then varies faster than it is read, and the interval must be wider.
const RELATIVE_NOISES: [f64; 3] = [2e-4, 2e-3, 1e-2];
/// The smallest noise of a power reading that is assumed for any sensor, relative to its value.
const MIN_RELATIVE_NOISE: f64 = 2e-4;
/// The process is fitted to the readings of this many seconds at the beginning and at the end.
const FIT_SECONDS: f64 = 10.0;

/// Finds the random process under which the readings are the most likely. Correlation time and noise come
/// from a small grid; the process's deviation follows in closed form.
pub(crate) fn fit_process(observations: &Observations, response: f64) -> Option<FittedProcess> {
    let (mean, spread) = observations.spread()?;
    let (first, last) = observations.extent()?;
    let parts = if last - first <= 2.0 * FIT_SECONDS {
        observations.within(&[(first, last)])
    } else {
        observations.within(&[(first, first + FIT_SECONDS), (last - FIT_SECONDS, last)])
    };
    let min_deviation = MIN_RELATIVE_NOISE * mean.abs().max(1.0);
    let deviation = spread.max(min_deviation);
    let mut best: Option<(f64, FittedProcess)> = None;
    for correlation_time in CORRELATION_TIMES {
        for noise in RELATIVE_NOISES {
            let process = PowerProcess {
                mean,
                deviation,
                correlation_time,
                response,
            };
            let noise = noise * mean.abs().max(1.0);
            let (mut logs, mut squares, mut count) = (0.0, 0.0, 0usize);
            for part in &parts {
                let outcome = part.run(&process, noise, None);
                logs += outcome.logs;
                squares += outcome.squares;
                count += outcome.count;
            }
            if count < 4 {
                return None;
            }
            let count = count as f64;
            let scale = (squares / count).max(1e-8);
            let cost = logs + count * scale.ln();
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                let by = scale.sqrt();
                let fitted = FittedProcess {
                    process: PowerProcess {
                        deviation: (deviation * by).max(min_deviation),
                        ..process
                    },
                    noise: (noise * by).max(min_deviation),
                    scales: None,
                };
                best = Some((cost, fitted));
            }
        }
    }
    best.map(|(_, fitted)| fitted)
}

impl FittedProcess {
    /// Adds how much power varies before each of these observations.
    pub fn with_local_scales(mut self, observations: &Observations) -> Self {
        self.scales = Some(local_scales(observations, &self));
        self
    }
}

/// The relative standard deviation of the driver buffer's gain error, if the energy counter is used to
/// correct it. The error measured on H200s was -1.4 to +0.3 %.
pub(crate) const CORRECTED_GAIN_DEVIATION: f64 = 0.01;
/// The minimum number of counter steps to fit the buffer's response.
const MIN_STEPS_FOR_RESPONSE: usize = 8;
/// At most this many counter steps are used to fit the buffer's response.
const MAX_STEPS_FOR_RESPONSE: usize = 400;
/// Candidate time constants of the buffer's response, in seconds; they enclose those of real boards.
const TIME_CONSTANTS: [f64; 5] = [0.009, 0.012, 0.015, 0.018, 0.021];
/// Candidate delays of the buffer's response, in seconds; they enclose those of real boards.
const DELAYS: [f64; 5] = [0.0, 0.0015, 0.003, 0.0045, 0.006];
/// Another response is preferred to that of the sensor model only if twice the log likelihood rises by more
/// than this.
const LOG_LIKELIHOOD_MARGIN: f64 = 12.0;

/// Finds the response of the driver's buffer with which its samples agree best with the counter. Returns the
/// response of the sensor model unless another is clearly better.
pub(crate) fn fit_response(trace: &Trace, steps: &[CounterStep]) -> Response {
    let modelled = trace.model.response;
    if steps.len() < MIN_STEPS_FOR_RESPONSE || trace.buffer.len() < MIN_STEPS_FOR_RESPONSE {
        return modelled;
    }
    let steps = &steps[..steps.len().min(MAX_STEPS_FOR_RESPONSE)];
    let reach = Seconds::new(1.0);
    let span = (steps[0].at() + -reach, steps[steps.len() - 1].at() + reach);
    let first = trace.buffer.partition_point(|sample| sample.at < span.0);
    let last = trace.buffer.partition_point(|sample| sample.at <= span.1);
    let samples = &trace.buffer[first..last.max(first)];
    let observations = |response: &Response| {
        let mut observations = Observations::new(span.0);
        observations.add_samples(samples, response, CORRECTED_GAIN_DEVIATION);
        observations.add_steps(steps);
        observations.sort();
        observations
    };
    let usual = observations(&modelled);
    let Some(fitted) = fit_process(&usual, modelled.time_constant.get()) else {
        return modelled;
    };
    let cost = |response: &Response| {
        let process = PowerProcess {
            response: response.time_constant.get(),
            ..fitted.process
        };
        let outcome = observations(response).run(&process, fitted.noise, None);
        outcome.logs + outcome.squares
    };
    let mut best = (cost(&modelled) - LOG_LIKELIHOOD_MARGIN, modelled);
    for constant in TIME_CONSTANTS {
        for delay in DELAYS {
            let response = Response {
                time_constant: Seconds::new(constant),
                delay: Seconds::new(delay),
            };
            let cost = cost(&response);
            if cost < best.0 {
                best = (cost, response);
            }
        }
    }
    best.1
}

/// The local scale of power's variation is estimated from this many readings before and after.
const SCALE_NEIGHBOURS: usize = 8;
/// The weight of the prior assumption that the local scale is 1, as a number of readings.
const PRIOR_WEIGHT: f64 = 1.0;

/// Estimates how much power varies before each event, relative to the fitted process: power has jumps and
/// quiet times. The innovations of the readings near the event show it.
fn local_scales(observations: &Observations, fitted: &FittedProcess) -> Vec<f64> {
    let outcome = observations.run(&fitted.process, fitted.noise, None);
    let innovations = &outcome.innovations;
    let mut scales = vec![1.0; observations.len()];
    let mut from = 0;
    for (place, (event, _)) in innovations.iter().enumerate() {
        let low = place.saturating_sub(SCALE_NEIGHBOURS);
        let high = (place + SCALE_NEIGHBOURS + 1).min(innovations.len());
        let (mut sum, mut weights) = (PRIOR_WEIGHT, PRIOR_WEIGHT);
        for (other, (_, square)) in innovations.iter().enumerate().take(high).skip(low) {
            let weight = 1.0 - place.abs_diff(other) as f64 / (SCALE_NEIGHBOURS + 1) as f64;
            sum += weight * square;
            weights += weight;
        }
        // Only the readings next to a jump show it.
        let next_to = &innovations[place.saturating_sub(1)..(place + 2).min(innovations.len())];
        let jump = next_to.iter().map(|(_, square)| square).sum::<f64>() / next_to.len() as f64;
        let scale = (sum / weights).max(jump).sqrt().clamp(0.1, 10.0);
        for slot in &mut scales[from..=*event] {
            *slot = scale;
        }
        from = event + 1;
    }
    if let Some((_, last)) = innovations
        .last()
        .zip(scales.get(from.saturating_sub(1)).copied())
    {
        for slot in &mut scales[from..] {
            *slot = last;
        }
    }
    scales
}
