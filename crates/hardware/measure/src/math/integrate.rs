//! Plain integrals of samples.

use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Seconds};

use super::readings::{PowerSample, Response, Span};

/// What samples add up to over a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Integral {
    /// Of the covered part.
    pub energy: Joules,
    /// The stretch less the holes between samples.
    pub covered: Seconds,
}

impl Integral {
    /// By trapezoids, for samples in order of time; two that are farther apart than `hole` bridge nothing.
    ///
    /// A first-order response `f` of power `p` with time constant `T` obeys `p = f + T df/dt`: the integral
    /// of `p` is that of `f` and `T` times its rise. Samples show the past, by their delay.
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

/// The parts of a stretch in which samples are farther apart than `hole`.
pub fn holes(samples: &[PowerSample], span: &Span, hole: Seconds) -> Vec<Span> {
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
