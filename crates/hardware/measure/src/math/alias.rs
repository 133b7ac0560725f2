//! What a sensor that looks only now and then cannot see.

use sweetspot_quantity::Ratio;

use super::counter::Knots;
use super::readings::{PolledPower, Span, Trace, WindowSensor};

/// Between which powers the device may be, in watts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    low: f64,
    high: f64,
}

impl Range {
    /// From the lowest power that was seen to the highest, or to the cap where that is known.
    pub fn of(trace: &Trace, knots: &Knots) -> Self {
        let polled = trace.instant.iter().chain(&trace.average);
        let means = knots.knots.windows(2).filter_map(|pair| {
            let span = (pair[1].at() - pair[0].at()).get();
            let is_known = pair[0].run == pair[1].run && span > 0.05;
            is_known.then(|| (pair[1].energy - pair[0].energy).get() / span)
        });
        let samples = trace.buffer.iter().map(|sample| sample.power.get());
        let seen = samples
            .chain(polled.map(|value| value.power.get()))
            .chain(means);
        let (low, high) = seen.fold((f64::INFINITY, 0f64), |(low, high), watts| {
            (low.min(watts), high.max(watts))
        });
        let high = trace.model.cap.map_or(high, |cap| high.max(cap.get()));
        Self {
            low: low.clamp(0.0, high),
            high,
        }
    }

    pub fn lowest(&self) -> f64 {
        self.low
    }

    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    pub fn middle(&self) -> f64 {
        0.5 * (self.low + self.high)
    }

    /// The deviation of power that jumps between the two ends and has this mean.
    pub fn two_levels(&self, mean: f64) -> f64 {
        let spread = (self.high - mean).max(0.0) * (mean - self.low).max(0.0);
        spread.sqrt().max(0.005 * mean.abs()).max(1e-3)
    }
}

/// What a sensor may have missed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unseen {
    /// The part of the time that it sees, where that is not all.
    pub share: Option<Ratio>,
    /// Joules.
    pub deviation: f64,
}

/// Loads that repeat faster than this are smoothed by the board itself or do not stay in step.
const FAST: f64 = 0.05;

/// A load in step with the sensor is misjudged in the same way again and again: such errors add up and do
/// not average out. What is seen of it are the jumps between values; each was somewhere between two looks.
/// What is not seen at all is a load whose period divides the sensor's, and nothing but the device's range
/// bounds that.
pub(crate) fn unseen(
    values: &[PolledPower],
    sensor: &WindowSensor,
    window: &Span,
    range: &Range,
) -> Unseen {
    let spacing = spacing(values).max(sensor.period.get());
    let gap = spacing - sensor.window.get();
    if gap <= 1e-6 {
        return Unseen {
            share: None,
            deviation: 0.0,
        };
    }
    let inside: Vec<f64> = values
        .iter()
        .filter(|value| value.appeared.end >= window.begin && value.appeared.end <= window.end)
        .map(|value| value.power.get())
        .collect();
    let jumps: f64 = inside
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).abs())
        .sum();
    // Each uniform within the gap, and all of them alike.
    let by_jumps = jumps * gap / 12f64.sqrt();
    let hidden = gap / spacing;
    let in_step = (gap / FAST).powi(2).min(1.0);
    let mean = inside.iter().sum::<f64>() / inside.len().max(1) as f64;
    let by_step = hidden * in_step * range.two_levels(mean).max(range.width() / 4.0);
    let length = window.length().get();
    let most = hidden * range.width() * length / 2.0;
    Unseen {
        share: Some(Ratio::new(sensor.window.get() / spacing)),
        deviation: by_jumps.min(most).hypot(by_step * length),
    }
}

/// How far apart the values usually are, in seconds.
fn spacing(values: &[PolledPower]) -> f64 {
    let mut gaps: Vec<f64> = values
        .windows(2)
        .map(|pair| (pair[1].appeared.end - pair[0].appeared.end).get())
        .collect();
    gaps.sort_by(f64::total_cmp);
    gaps.get(gaps.len() / 2).copied().unwrap_or(0.0)
}
