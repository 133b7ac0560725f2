//! The delay and the averaging time of a meter, from the power of fast sensors.

use sweetspot_quantity::Seconds;

use super::fast_power::FastView;
use super::samples::Sample;

/// The number of delays that are compared.
const DELAYS: usize = 81;
/// The averaging times that are compared if the meter's is unknown, in update periods.
const WINDOWS: [f64; 9] = [0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0, 1.5, 2.0];
/// Errors of neighbouring values are not independent: a comparison counts only this share of them.
const INDEPENDENT_SHARE: f64 = 0.5;
/// The least number of values for a comparison.
const MIN_SAMPLES: usize = 6;
/// The range of the fast power's share in the meter's: a supply loses some of it, and one of several supplies gives
/// only a part.
const GAINS: (f64, f64) = (0.0, 2.0);

/// How a meter's values relate to the power of the fast sensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alignment {
    /// The time from the end of the averaging until a value appears.
    pub delay: Seconds,
    /// The standard deviation of the delay.
    pub delay_deviation: Seconds,
    /// The averaging time.
    pub window: Seconds,
    /// The correlation of the meter's values with the fast power at this delay.
    pub correlation: f64,
}

/// One possible delay and averaging time, and how well it explains the values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub delay: f64,
    pub window: f64,
    /// The share of the fast power in the meter's.
    pub gain: f64,
    /// The probability of this candidate.
    pub weight: f64,
    correlation: f64,
}

/// Rates all possible delays and averaging times. Without a fast sensor all are equally likely, and no power is shared.
pub(super) fn candidates(
    samples: &[Sample],
    fast: Option<FastView<'_>>,
    window: Option<f64>,
    period: f64,
    max_delay: f64,
) -> Vec<Candidate> {
    let windows: Vec<f64> = match window {
        Some(window) => vec![window],
        None => WINDOWS.iter().map(|part| part * period).collect(),
    };
    let mut rated: Vec<(Candidate, f64)> = Vec::new();
    let mut least = f64::INFINITY;
    for window in windows {
        for index in 0..DELAYS {
            let delay = max_delay * index as f64 / (DELAYS - 1) as f64;
            let fit = fast.and_then(|fast| fit(samples, fast, delay, window));
            let (gain, correlation, cost) = fit.unwrap_or((0.0, 0.0, 0.0));
            least = least.min(cost);
            let candidate = Candidate {
                delay,
                window,
                gain,
                weight: 1.0,
                correlation,
            };
            rated.push((candidate, cost));
        }
    }
    let total: f64 = rated.iter().map(|(_, cost)| (least - cost).exp()).sum();
    rated
        .into_iter()
        .map(|(candidate, cost)| Candidate {
            weight: (least - cost).exp() / total,
            ..candidate
        })
        .filter(|candidate| candidate.weight > 1e-6)
        .collect()
}

/// Fits the meter's values by the fast power at one delay: returns the gain, the correlation, and the negative logarithm
/// of the likelihood.
fn fit(samples: &[Sample], fast: FastView<'_>, delay: f64, window: f64) -> Option<(f64, f64, f64)> {
    let mut count = 0.0;
    let (mut x1, mut y1, mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for sample in samples {
        let end = sample.at - delay;
        let window = sample.window.unwrap_or(window);
        if !fast.covers(end - window, end) {
            continue;
        }
        let x = fast.mean(end - window, end);
        let y = sample.power;
        count += 1.0;
        x1 += x;
        y1 += y;
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    if count < MIN_SAMPLES as f64 {
        return None;
    }
    let (sxx, syy, sxy) = (
        xx - x1 * x1 / count,
        yy - y1 * y1 / count,
        xy - x1 * y1 / count,
    );
    // Numbers that differ by rounding alone do not tell a delay.
    if sxx <= 1e-9 * xx || syy <= 1e-9 * yy {
        return None;
    }
    let gain = (sxy / sxx).clamp(GAINS.0, GAINS.1);
    let rest = (syy - 2.0 * gain * sxy + gain * gain * sxx).max(1e-9 * yy);
    let cost = 0.5 * INDEPENDENT_SHARE * count * (rest / count).ln();
    Some((gain, sxy / (sxx * syy).sqrt(), cost))
}

/// Summarises the candidates; `None` if nothing was learnt from a fast sensor.
pub(super) fn summarise(candidates: &[Candidate]) -> Option<Alignment> {
    let mean = |value: fn(&Candidate) -> f64| {
        candidates
            .iter()
            .map(|one| one.weight * value(one))
            .sum::<f64>()
    };
    let best = candidates
        .iter()
        .max_by(|a, b| a.weight.total_cmp(&b.weight))?;
    if best.correlation <= 0.0 {
        return None;
    }
    let delay = mean(|one| one.delay);
    let square = candidates
        .iter()
        .map(|one| one.weight * (one.delay - delay).powi(2))
        .sum::<f64>();
    Some(Alignment {
        delay: Seconds::new(delay),
        delay_deviation: Seconds::new(square.sqrt()),
        window: Seconds::new(mean(|one| one.window)),
        correlation: best.correlation,
    })
}
