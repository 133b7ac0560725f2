//! Sudden changes of power at the ends of a measurement window.

use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Seconds};

use super::energy::{Energy, Z95};
use super::estimator::{EnergyEstimator, within};
use super::readings::Span;
use crate::method::{Method, MethodChoice};

/// The power just outside a measurement window is determined from the readings in this time before and after
/// the window.
const OUTSIDE_SPAN: Seconds = Seconds::new(0.3);
/// The accuracy, in seconds, with which the buffer's samples locate a sudden change of power.
const SAMPLE_RESOLUTION: f64 = 0.008;

impl EnergyEstimator<'_> {
    /// Widens the interval for steps of power at the ends of the measurement window, such as the start of a
    /// command. The energy of such a step lies wholly within the window, but the modelled process spreads it
    /// to both sides of the window's end.
    pub(super) fn widen_for_power_steps(&self, mut energy: Energy, choice: MethodChoice) -> Energy {
        let resolution = match (energy.method, choice) {
            (Method::CounterAndBuffer | Method::Buffer | Method::BufferAndPoll, _) => {
                SAMPLE_RESOLUTION
            }
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
            Span::new(begin + -OUTSIDE_SPAN, begin),
            Span::new(end, end + OUTSIDE_SPAN),
        ];
        let steps = beyond.map(|span| {
            let outside = self
                .mean_power(&span)
                .unwrap_or_else(|| self.range.lowest());
            (outside - inside).abs() * resolution / 12f64.sqrt()
        });
        let deviation = energy.deviation().get().hypot(steps[0]).hypot(steps[1]);
        let half = Joules::new(Z95 * deviation);
        energy.interval95 = ((energy.value - half).max(Joules::ZERO), energy.value + half);
        energy
    }

    /// The mean power in a time span, in watts, from any readings in it; `None` without readings.
    fn mean_power(&self, span: &Span) -> Option<f64> {
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
