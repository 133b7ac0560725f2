//! Which process of power the readings speak for.

use sweetspot_quantity::Seconds;

use super::counter::Knot;
use super::evidence::Evidence;
use super::process::Process;
use super::readings::{Response, Trace};

/// A process, the noise of a power reading, and how lively power was before each event.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub process: Process,
    /// Watts.
    pub noise: f64,
    pub scales: Option<Vec<f64>>,
}

/// Seconds in which power forgets, to choose from.
const MEMORIES: [f64; 10] = [0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.2, 0.5, 1.5, 5.0];
/// Noise of a reading against the mean power, to choose from. More than this is power that moves faster than
/// it is read: to take it for noise would promise too much.
const NOISES: [f64; 3] = [2e-4, 2e-3, 1e-2];
/// No sensor is better than this part of what it shows.
const FINEST: f64 = 2e-4;
/// Seconds of readings at each end that are looked at.
const ENOUGH: f64 = 10.0;

/// The process under which the readings are the most likely, by a search over a small grid; the deviation
/// follows from the readings in closed form.
pub(crate) fn fit(evidence: &Evidence, response: f64) -> Option<Fitted> {
    let (mean, spread) = evidence.spread()?;
    let (first, last) = evidence.extent()?;
    let parts = if last - first <= 2.0 * ENOUGH {
        evidence.parts(&[(first, last)])
    } else {
        evidence.parts(&[(first, first + ENOUGH), (last - ENOUGH, last)])
    };
    let finest = FINEST * mean.abs().max(1.0);
    let deviation = spread.max(finest);
    let mut best: Option<(f64, Fitted)> = None;
    for memory in MEMORIES {
        for noise in NOISES {
            let process = Process {
                mean,
                deviation,
                memory,
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
                let fitted = Fitted {
                    process: Process {
                        deviation: (deviation * by).max(finest),
                        ..process
                    },
                    noise: (noise * by).max(finest),
                    scales: None,
                };
                best = Some((cost, fitted));
            }
        }
    }
    let (_, mut fitted) = best?;
    fitted.scales = Some(liveliness(evidence, &fitted));
    Some(fitted)
}

/// Of the buffer's gain, beside a counter that shows it (H200: -1.4 to +0.3 %).
pub(crate) const UNCALIBRATED: f64 = 0.01;
/// Counter moves from which the buffer's response can be told, at least, and at most.
const TELLING: usize = 8;
const PLENTY: usize = 400;
/// Seconds to choose the response from; a board's own is among them.
const CONSTANTS: [f64; 5] = [0.009, 0.012, 0.015, 0.018, 0.021];
const DELAYS: [f64; 5] = [0.0, 0.0015, 0.003, 0.0045, 0.006];
/// Twice the logarithm of likelihood by which another response must beat the model's.
const CLEARLY: f64 = 12.0;

/// The response under which samples and counter agree best; the model's where no other is clearly better.
pub(crate) fn respond(trace: &Trace, knots: &[Knot]) -> Response {
    let told = trace.model.response;
    if knots.len() < TELLING || trace.buffer.len() < TELLING {
        return told;
    }
    let knots = &knots[..knots.len().min(PLENTY)];
    let reach = Seconds::new(1.0);
    let span = (knots[0].at() + -reach, knots[knots.len() - 1].at() + reach);
    let first = trace.buffer.partition_point(|sample| sample.at < span.0);
    let last = trace.buffer.partition_point(|sample| sample.at <= span.1);
    let samples = &trace.buffer[first..last.max(first)];
    let evidence = |response: &Response| {
        let mut evidence = Evidence::new(span.0);
        evidence.samples(samples, response, 1.0, UNCALIBRATED);
        evidence.knots(knots);
        evidence.sort();
        evidence
    };
    let usual = evidence(&told);
    let Some(fitted) = fit(&usual, told.time_constant.get()) else {
        return told;
    };
    let cost = |response: &Response| {
        let process = Process {
            response: response.time_constant.get(),
            ..fitted.process
        };
        let outcome = evidence(response).run(&process, fitted.noise, None);
        outcome.logs + outcome.squares
    };
    let mut best = (cost(&told) - CLEARLY, told);
    for constant in CONSTANTS {
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

/// Readings on either side that say how lively power is.
const NEIGHBOURS: usize = 8;
/// Readings' worth of belief that it is as lively as ever.
const BELIEF: f64 = 1.0;

/// Power steps now and rests then: how far it moves before each event, against its usual way, from how far
/// the readings near it were from what was expected.
fn liveliness(evidence: &Evidence, fitted: &Fitted) -> Vec<f64> {
    let outcome = evidence.run(&fitted.process, fitted.noise, None);
    let surprises = &outcome.surprises;
    let mut scales = vec![1.0; evidence.len()];
    let mut from = 0;
    for (place, (event, _)) in surprises.iter().enumerate() {
        let low = place.saturating_sub(NEIGHBOURS);
        let high = (place + NEIGHBOURS + 1).min(surprises.len());
        let (mut sum, mut weights) = (BELIEF, BELIEF);
        for (other, (_, square)) in surprises.iter().enumerate().take(high).skip(low) {
            let weight = 1.0 - place.abs_diff(other) as f64 / (NEIGHBOURS + 1) as f64;
            sum += weight * square;
            weights += weight;
        }
        // A jump is known by the readings next to it alone.
        let next_to = &surprises[place.saturating_sub(1)..(place + 2).min(surprises.len())];
        let jump = next_to.iter().map(|(_, square)| square).sum::<f64>() / next_to.len() as f64;
        let scale = (sum / weights).max(jump).sqrt().clamp(0.1, 10.0);
        for slot in &mut scales[from..=*event] {
            *slot = scale;
        }
        from = event + 1;
    }
    if let Some((_, last)) = surprises
        .last()
        .zip(scales.get(from.saturating_sub(1)).copied())
    {
        for slot in &mut scales[from..] {
            *slot = last;
        }
    }
    scales
}
