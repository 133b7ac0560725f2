//! The power of the devices whose sensors are fast, as one curve.

use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Ratio};

use crate::math::{Span, Trace};

/// The time between two points of the curve, in seconds.
const STEP: f64 = 0.02;
/// The longest curve, in points: two days.
const MAX_POINTS: usize = 8_640_000;
/// A device's readings make a curve only if they are at most this far apart in the middle, in seconds.
const MAX_GAP: f64 = 0.5;

/// The power of several devices together, sampled finely enough to show when a load begins and ends.
#[derive(Clone, Debug, PartialEq)]
pub struct FastPower {
    begin: Moment,
    /// The energy from `begin` to each point, in joules.
    energy: Vec<f64>,
}

impl FastPower {
    /// Adds up the power of those devices that have a fast sensor, over the time that all of them were read; `None` if
    /// none has one.
    pub fn new<'a>(traces: impl IntoIterator<Item = &'a Trace>) -> Option<Self> {
        let curves: Vec<Vec<(Moment, f64)>> = traces.into_iter().filter_map(curve).collect();
        Self::from_curves(&curves)
    }

    /// Adds up curves of power, whose points are in order of time.
    pub fn from_curves(curves: &[Vec<(Moment, f64)>]) -> Option<Self> {
        let begin = curves
            .iter()
            .filter_map(|curve| Some(curve.first()?.0))
            .max()?;
        let end = curves
            .iter()
            .filter_map(|curve| Some(curve.last()?.0))
            .min()?;
        let points = ((end - begin).get() / STEP) as usize;
        if end <= begin || points < 2 {
            return None;
        }
        let points = points.min(MAX_POINTS);
        let mut power = vec![0.0; points + 1];
        for curve in curves {
            let mut next = 0;
            for (index, sum) in power.iter_mut().enumerate() {
                let at = index as f64 * STEP;
                let seconds = |place: usize| (curve[place].0 - begin).get();
                while next + 1 < curve.len() && seconds(next + 1) < at {
                    next += 1;
                }
                let last = (next + 1).min(curve.len() - 1);
                let (from, to) = (seconds(next), seconds(last));
                let share = match to > from {
                    true => ((at - from) / (to - from)).clamp(0.0, 1.0),
                    false => 0.0,
                };
                *sum += curve[next].1 + share * (curve[last].1 - curve[next].1);
            }
        }
        let mut energy = vec![0.0; power.len()];
        for index in 1..power.len() {
            energy[index] = energy[index - 1] + 0.5 * STEP * (power[index - 1] + power[index]);
        }
        Some(Self { begin, energy })
    }

    /// The time that the curve covers.
    pub fn span(&self) -> Span {
        let length = (self.energy.len() - 1) as f64 * STEP;
        Span::new(
            self.begin,
            self.begin + sweetspot_quantity::Seconds::new(length),
        )
    }

    /// The energy of a time span, in which the power beyond the ends of the curve is that at the ends.
    pub fn energy(&self, span: &Span) -> Joules {
        let view = self.view(span.begin);
        Joules::new(view.energy_until(span.length().get()) - view.energy_until(0.0))
    }

    /// Returns the curve with all powers multiplied by a factor.
    pub fn scaled(self, factor: Ratio) -> Self {
        let scale = |energy: f64| energy * factor.get();
        Self {
            energy: self.energy.into_iter().map(scale).collect(),
            ..self
        }
    }

    /// The curve from a moment on.
    #[cfg(test)]
    pub(super) fn from(mut self, begin: Moment) -> Self {
        let skipped = ((begin - self.begin).get() / STEP).max(0.0) as usize;
        self.begin = self.begin + sweetspot_quantity::Seconds::new(skipped as f64 * STEP);
        self.energy.drain(..skipped.min(self.energy.len()));
        self
    }

    /// A view of the curve whose times are in seconds after `origin`.
    pub(super) fn view(&self, origin: Moment) -> FastView<'_> {
        FastView {
            begin: (self.begin - origin).get(),
            energy: &self.energy,
        }
    }
}

/// A curve of power, with times in seconds.
#[derive(Clone, Copy)]
pub(super) struct FastView<'a> {
    begin: f64,
    energy: &'a [f64],
}

impl FastView<'_> {
    /// The energy until a time, in joules. The power beyond the ends is that at the ends.
    pub fn energy_until(&self, time: f64) -> f64 {
        let last = self.energy.len() - 1;
        let place = (time - self.begin) / STEP;
        let index = (place.max(0.0) as usize).min(last - 1);
        let (from, to) = (self.energy[index], self.energy[index + 1]);
        from + (place - index as f64) * (to - from)
    }

    /// The mean power between two times, in watts.
    pub fn mean(&self, from: f64, to: f64) -> f64 {
        (self.energy_until(to) - self.energy_until(from)) / (to - from)
    }

    /// The time that the curve covers.
    pub fn covers(&self, from: f64, to: f64) -> bool {
        let end = self.begin + (self.energy.len() - 1) as f64 * STEP;
        from >= self.begin && to <= end
    }
}

/// The power of one device over time, from its fastest sensor; `None` if it has none that is fast.
fn curve(trace: &Trace) -> Option<Vec<(Moment, f64)>> {
    let buffer = trace.buffer.iter();
    let delay = trace.model.response.delay + trace.model.response.time_constant;
    let buffer: Vec<_> = buffer
        .map(|sample| (sample.at + -delay, sample.power.get()))
        .collect();
    let polled = |values: &[crate::math::PolledPower],
                  sensor: crate::math::WindowSensor|
     -> Vec<_> {
        let late = sensor.lag + sensor.window / 2.0;
        let point =
            |value: &crate::math::PolledPower| (value.appeared.middle() + -late, value.power.get());
        values.iter().map(point).collect()
    };
    let instant = polled(&trace.instant, trace.model.instant);
    let average = polled(&trace.average, trace.model.average);
    let counter = trace.counter.windows(2).filter_map(|pair| {
        let span = Span::new(pair[0].call.middle(), pair[1].call.middle());
        let energy = (pair[1].value - pair[0].value).get();
        (span.length().get() > 0.0 && energy >= 0.0)
            .then(|| (span.middle(), energy / span.length().get()))
    });
    let counter: Vec<_> = counter.collect();
    [buffer, instant, average, counter]
        .into_iter()
        .find(|curve| is_fast(curve))
}

/// Whether the points of a curve are dense.
fn is_fast(curve: &[(Moment, f64)]) -> bool {
    let mut gaps: Vec<f64> = curve
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].0).get())
        .collect();
    if gaps.len() < 4 {
        return false;
    }
    gaps.sort_by(f64::total_cmp);
    gaps[gaps.len() / 2] <= MAX_GAP
}
