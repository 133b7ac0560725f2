//! Integrals of samples by the trapezoidal rule.

use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Seconds};

use super::readings::{PowerSample, Response, Span};

/// The integral of power samples over a span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Integral {
    /// The energy of the span, without the time between samples that are too far apart.
    pub energy: Joules,
    /// The length of the span, without the time between samples that are too far apart.
    pub covered: Seconds,
}

impl Integral {
    /// Integrates power over a span. The samples must be in order of time; the time between two samples
    /// farther apart than `hole` is left out.
    ///
    /// A first-order response `f` of power `p` with time constant `T` obeys `p = f + T df/dt`: the integral
    /// of `p` is that of `f` plus `T` times the rise of `f`. The response's delay is subtracted from the
    /// samples' times.
    pub fn of(samples: &[PowerSample], response: &Response, span: &Span, hole: Seconds) -> Self {
        let mut integral = Self {
            energy: Joules::ZERO,
            covered: Seconds::ZERO,
        };
        let shifted = Span::new(span.begin + response.delay, span.end + response.delay);
        for pair in samples.windows(2) {
            let between = Span::new(pair[0].at, pair[1].at);
            let Some(part) = between.overlap(&shifted) else {
                continue;
            };
            if between.length() > hole {
                continue;
            }
            let slope = (pair[1].power - pair[0].power).get() / between.length().get();
            let at = |moment: Moment| pair[0].power.get() + slope * (moment - between.begin).get();
            let (first, last) = (at(part.begin), at(part.end));
            let length = part.length();
            let area = 0.5 * (first + last) * length.get();
            integral.energy += Joules::new(area + response.time_constant.get() * (last - first));
            integral.covered += length;
        }
        integral
    }
}

/// The parts of a span in which two neighbouring samples are farther apart than `hole`.
pub fn find_holes(samples: &[PowerSample], span: &Span, hole: Seconds) -> Vec<Span> {
    let begin = samples.partition_point(|sample| sample.at < span.begin);
    let end = samples.partition_point(|sample| sample.at <= span.end);
    let before = begin
        .checked_sub(1)
        .map_or(span.begin, |index| samples[index].at);
    let after = samples.get(end).map_or(span.end, |sample| sample.at);
    let mut last = before;
    let mut holes = Vec::new();
    let moments = samples[begin..end.max(begin)]
        .iter()
        .map(|sample| sample.at);
    for moment in moments.chain([after]) {
        let silent = Span::new(last, moment);
        if silent.length() > hole {
            holes.extend(silent.overlap(span));
        }
        last = moment;
    }
    holes
}
