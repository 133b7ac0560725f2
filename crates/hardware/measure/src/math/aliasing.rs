//! Aliasing: the error of a sensor that averages over only a part of each update period.

use sweetspot_quantity::Ratio;

use super::counter_steps::CounterSteps;
use super::readings::{PolledPower, Span, Trace, WindowSensor};

/// The range of power that the device can draw, in watts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PowerRange {
    low: f64,
    high: f64,
}

impl PowerRange {
    /// The range of all measured power values; if the device's power cap is known and higher, the range
    /// extends to it.
    pub fn from_readings(trace: &Trace, steps: &CounterSteps) -> Self {
        let polled = trace.instant.iter().chain(&trace.average);
        let means = steps.steps.windows(2).filter_map(|pair| {
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

    /// The lowest power, in watts.
    pub fn lowest(&self) -> f64 {
        self.low
    }

    /// The difference between highest and lowest power, in watts.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// The mean of lowest and highest power, in watts.
    pub fn middle(&self) -> f64 {
        0.5 * (self.low + self.high)
    }

    /// The largest possible standard deviation of power with this mean, in watts: power that switches between
    /// the lowest and the highest value.
    pub fn two_level_deviation(&self, mean: f64) -> f64 {
        let spread = (self.high - mean).max(0.0) * (mean - self.low).max(0.0);
        spread.sqrt().max(0.005 * mean.abs()).max(1e-3)
    }
}

/// The uncertainty of a power sensor that averages over only a part of each update period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AliasingUncertainty {
    /// The part of the time that the sensor measures; `None` if it measures all of the time.
    pub share: Option<Ratio>,
    /// The standard deviation that aliasing adds to the energy of the measurement window, in joules.
    pub deviation: f64,
}

/// The shortest period of a load, in seconds, that can cause aliasing. Faster loads are smoothed by the board
/// or do not stay in step with the sensor.
const SHORTEST_ALIASED_PERIOD: f64 = 0.05;

/// Estimates the error of a sensor that does not measure all of the time.
///
/// If the load varies in step with the sensor, the sensor errs in the same way in every period: such errors
/// add up and do not average out. Jumps between readings show a part of this error. A load whose period
/// divides the sensor's shows no jumps; its error is bounded only by the device's range of power.
pub(crate) fn aliasing_error(
    values: &[PolledPower],
    sensor: &WindowSensor,
    window: &Span,
    range: &PowerRange,
) -> AliasingUncertainty {
    let spacing = spacing(values).max(sensor.period.get());
    let gap = spacing - sensor.window.get();
    if gap <= 1e-6 {
        return AliasingUncertainty {
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
    // Each jump is uniform within the gap, and all errors have the same sign.
    let by_jumps = jumps * gap / 12f64.sqrt();
    let hidden = gap / spacing;
    let in_step = (gap / SHORTEST_ALIASED_PERIOD).powi(2).min(1.0);
    let mean = inside.iter().sum::<f64>() / inside.len().max(1) as f64;
    let by_step = hidden * in_step * range.two_level_deviation(mean).max(range.width() / 4.0);
    let length = window.length().get();
    let most = hidden * range.width() * length / 2.0;
    AliasingUncertainty {
        share: Some(Ratio::new(sensor.window.get() / spacing)),
        deviation: by_jumps.min(most).hypot(by_step * length),
    }
}

/// The median time between two new values of a polled sensor, in seconds.
fn spacing(values: &[PolledPower]) -> f64 {
    let mut gaps: Vec<f64> = values
        .windows(2)
        .map(|pair| (pair[1].appeared.end - pair[0].appeared.end).get())
        .collect();
    gaps.sort_by(f64::total_cmp);
    gaps.get(gaps.len() / 2).copied().unwrap_or(0.0)
}
