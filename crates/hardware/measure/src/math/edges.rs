//! A load that begins or ends with the window.

use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Seconds};

use super::energy::{Energy, Z95};
use super::readings::Span;
use super::window::{Ledger, within};
use crate::method::{Method, MethodChoice};

/// So much before and after a window says what was drawn there.
const BEYOND: Seconds = Seconds::new(0.3);
/// Within this time of a step the samples of the buffer say little of when it was.
const OF_SAMPLES: f64 = 0.008;

impl Ledger<'_> {
    /// Widens the interval for steps of power at the window's ends. A command's start is such a step: all of
    /// the energy of the reading across it lies within the window, where a process that knows of no window
    /// has some of it before.
    pub(super) fn blur(&self, mut energy: Energy, choice: MethodChoice) -> Energy {
        let resolution = match (energy.method, choice) {
            (Method::CounterSnapped, _) => return energy,
            (Method::CounterAndBuffer | Method::Buffer | Method::BufferAndPoll, _) => OF_SAMPLES,
            (Method::Counter, _) => self.trace.model.counter_period.get(),
            (Method::PollInstant | Method::PollAverage, choice) => {
                let sensor = self.trace.model.instant.period.get();
                match choice {
                    MethodChoice::Poll(every) => sensor.max(every.get()),
                    _ => sensor,
                }
            }
        };
        let inside = energy.power().get();
        let (begin, end) = (energy.covered.begin, energy.covered.end);
        let beyond = [
            Span::new(begin + -BEYOND, begin),
            Span::new(end, end + BEYOND),
        ];
        let steps = beyond.map(|span| {
            let outside = self.level(&span).unwrap_or_else(|| self.range.lowest());
            (outside - inside).abs() * resolution / 12f64.sqrt()
        });
        let deviation = energy.deviation().get().hypot(steps[0]).hypot(steps[1]);
        let half = Joules::new(Z95 * deviation);
        energy.interval95 = ((energy.value - half).max(Joules::ZERO), energy.value + half);
        energy
    }

    /// Mean power in a span, by whatever was read there.
    fn level(&self, span: &Span) -> Option<f64> {
        let mean = |values: Vec<f64>| {
            let sum: f64 = values.iter().sum();
            (!values.is_empty()).then(|| sum / values.len() as f64)
        };
        let samples = within(&self.trace.buffer, span, |sample| sample.at);
        let polled = self.trace.instant.iter().chain(&self.trace.average);
        let is_inside = |at: Moment| span.begin <= at && at <= span.end;
        mean(samples.iter().map(|sample| sample.power.get()).collect()).or_else(|| {
            let seen = polled.filter(|value| is_inside(value.appeared.end));
            mean(seen.map(|value| value.power.get()).collect())
        })
    }
}
