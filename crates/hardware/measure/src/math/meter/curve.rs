//! The readings of a meter as a curve of power, and energies from it.

use super::alignment::{Candidate, KnownTimes};
use super::fast_power::FastView;
use super::samples::Sample;
use crate::math::energy::Z95;

/// The share of the candidates that does not count for the range of an estimate.
const UNLIKELY: f64 = 0.04;

/// An energy and the uncertainty of its error, in joules and joules squared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    pub value: f64,
    pub variance: f64,
    /// The lowest and the highest end of the 95 % intervals of likely delays and averaging times.
    pub range: (f64, f64),
}

impl Estimate {
    /// An estimate with one delay and averaging time.
    pub fn new(value: f64, variance: f64) -> Self {
        Self::with_systematic(value, variance, 0.0)
    }

    /// An estimate whose error has a part that is not smaller with more values, of this variance: it widens the interval,
    /// and does not decide between two methods that share it.
    fn with_systematic(value: f64, variance: f64, systematic: f64) -> Self {
        let half = Z95 * (variance + systematic).sqrt();
        Self {
            value,
            variance,
            range: (value - half, value + half),
        }
    }

    /// The 95 % interval, with another error of this standard deviation.
    pub fn interval(&self, other: f64) -> (f64, f64) {
        let half = Z95 * (self.variance + other * other).sqrt();
        // Two averaging times that are likely may give energies that are far apart, with nothing between them.
        let beyond = |end: f64| Z95 * ((end / Z95).powi(2) + other * other).sqrt();
        let low = half.max(beyond(self.value - self.range.0));
        let high = half.max(beyond(self.range.1 - self.value));
        ((self.value - low).max(0.0), self.value + high)
    }
}

/// The readings of a meter with everything that the estimates need, in seconds after an origin.
pub(super) struct Curve<'a> {
    pub samples: Vec<Sample>,
    pub fast: Option<FastView<'a>>,
    pub known: KnownTimes,
}

/// Averages an estimate over all candidates; their differences are part of the variance.
pub(super) fn average(
    all: &[Candidate],
    estimate: impl Fn(&Candidate) -> Option<Estimate>,
) -> Option<Estimate> {
    let all: Option<Vec<(f64, Estimate)>> = all
        .iter()
        .map(|one| Some((one.weight, estimate(one)?)))
        .collect();
    let mut all = all?;
    let total: f64 = all.iter().map(|(weight, _)| weight).sum();
    let mean_of = |value: &dyn Fn(&Estimate) -> f64| {
        all.iter()
            .map(|(weight, one)| weight * value(one))
            .sum::<f64>()
            / total
    };
    let value = mean_of(&|one| one.value);
    let variance = mean_of(&|one| one.variance + (one.value - value).powi(2));
    let unlikely = 0.5 * UNLIKELY * total;
    all.sort_by(|a, b| a.1.range.0.total_cmp(&b.1.range.0));
    let low = first_likely(&mut all.iter(), unlikely)?.range.0;
    all.sort_by(|a, b| b.1.range.1.total_cmp(&a.1.range.1));
    let high = first_likely(&mut all.iter(), unlikely)?.range.1;
    let range = (low, high);
    Some(Estimate {
        value,
        variance,
        range,
    })
}

/// The first estimate after those whose weights add up to what is unlikely.
fn first_likely<'a>(
    all: &mut impl Iterator<Item = &'a (f64, Estimate)>,
    unlikely: f64,
) -> Option<&'a Estimate> {
    let mut sum = 0.0;
    let found = all.find(|(weight, _)| {
        sum += weight;
        sum > unlikely
    });
    found.map(|(_, one)| one)
}

/// The length that two spans have in common.
pub(super) fn overlap(from: f64, to: f64, begin: f64, end: f64) -> f64 {
    (to.min(end) - from.max(begin)).max(0.0)
}

impl Curve<'_> {
    /// The part of a time span from 0 to `length` for which there are readings, at the likeliest delay.
    pub fn covered(&self, all: &[Candidate], length: f64) -> Option<(f64, f64)> {
        let best = all.iter().max_by(|a, b| a.weight.total_cmp(&b.weight))?;
        let late = |sample: &Sample| sample.at - best.delay;
        let margin = 1.5 * self.known.period;
        let begin = self.samples.first().map(late)? - best.window - margin;
        let end = self.samples.last().map(late)? + margin;
        let covered = (begin.max(0.0), end.min(length));
        (covered.0 < covered.1).then_some(covered)
    }

    /// The values with the mean of the fast power over the times that they cover: the middle of each such time in seconds,
    /// the mean and the value in watts.
    fn pairs(&self, one: &Candidate) -> Vec<(f64, f64, f64)> {
        let is_long = self.known.is_long(one.window);
        let pair = |sample: &Sample| {
            let window = sample.window.unwrap_or(one.window);
            let end = sample.at - one.delay;
            let Some(fast) = self.fast else {
                return Some((end - 0.5 * window, 0.0, sample.power));
            };
            // What the fast power was long before it was read is not known.
            let is_known = !is_long || fast.covers(end - window, end);
            is_known.then(|| {
                (
                    end - 0.5 * window,
                    fast.mean(end - window, end),
                    sample.power,
                )
            })
        };
        self.samples.iter().filter_map(pair).collect()
    }

    /// The energy between two times if the meter has this delay and averaging time: the shape comes from the fast power,
    /// the level from the meter.
    pub fn energy(
        &self,
        one: &Candidate,
        begin: f64,
        end: f64,
        missing: f64,
        resolution: f64,
    ) -> Option<Estimate> {
        let pairs = self.pairs(one);
        // What the fast power does not explain.
        let residuals: Vec<(f64, f64)> = pairs
            .iter()
            .map(|(at, mean, power)| (*at, power - one.gain * mean))
            .collect();
        let means: Vec<(f64, f64)> = pairs.iter().map(|(at, mean, _)| (*at, *mean)).collect();
        let fast_energy = self.fast.map_or(0.0, |fast| {
            fast.energy_until(end) - fast.energy_until(begin)
        });
        let value = one.gain * fast_energy + integrate(&residuals, begin, end)?;
        let length = end - begin;
        let noise = differences(&residuals);
        let spread = spread(&residuals);
        let blur = self
            .samples
            .iter()
            .map(|sample| sample.blur)
            .fold(0.0, f64::max);
        // A load that is steadier than a step of the display has the same rounding in all values.
        let rounding = match noise < 0.5 * resolution {
            true => resolution / 12f64.sqrt() * length,
            false => 0.0,
        };
        let edges = 2.0 * (noise * self.known.period).powi(2) + 2.0 * (spread * blur).powi(2);
        // What changes at the ends of the span is spread over the averaging time.
        let smear = match self.known.is_long(one.window) {
            true => 2.0 * (0.5 * spread * one.window).powi(2),
            false => 0.0,
        };
        // An error of the gain counts where the values do not show all of the fast power.
        let not_shown = fast_energy - integrate(&means, begin, end)?;
        let of_gain = one.gain_variance * not_shown * not_shown;
        let variance = noise * noise * self.known.period * length
            + edges
            + rounding * rounding
            + smear
            + (spread * missing).powi(2);
        Some(Estimate::with_systematic(value, variance, of_gain))
    }
}

/// The integral of a curve of straight lines between two times; beyond its ends it stays as at its ends.
fn integrate(points: &[(f64, f64)], begin: f64, end: f64) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    let mut sum = first.1 * overlap(f64::NEG_INFINITY, first.0, begin, end)
        + last.1 * overlap(last.0, f64::INFINITY, begin, end);
    let from = points
        .partition_point(|point| point.0 < begin)
        .saturating_sub(1);
    for pair in points[from..].windows(2) {
        let ((t0, p0), (t1, p1)) = (pair[0], pair[1]);
        if t0 >= end {
            break;
        }
        let (a, b) = (t0.max(begin), t1.min(end));
        if b > a && t1 > t0 {
            let at = |time: f64| p0 + (time - t0) / (t1 - t0) * (p1 - p0);
            sum += (b - a) * at(0.5 * (a + b));
        }
    }
    Some(sum)
}

/// The standard deviation of the errors of single values, from differences of neighbours. The median leaves out steps of
/// the load.
fn differences(points: &[(f64, f64)]) -> f64 {
    let mut steps: Vec<f64> = points
        .windows(2)
        .map(|pair| (pair[1].1 - pair[0].1).abs())
        .collect();
    if steps.is_empty() {
        return 0.0;
    }
    let root = (steps.iter().map(|step| step * step).sum::<f64>() / steps.len() as f64).sqrt();
    steps.sort_by(f64::total_cmp);
    let median = steps[steps.len() / 2] / 0.9539;
    // Between the two: steps that the fast sensors do not explain are errors at the ends too.
    (median * root).sqrt().max(median) / 2f64.sqrt()
}

/// The standard deviation of values.
fn spread(points: &[(f64, f64)]) -> f64 {
    let count = points.len().max(1) as f64;
    let mean = points.iter().map(|point| point.1).sum::<f64>() / count;
    (points
        .iter()
        .map(|point| (point.1 - mean).powi(2))
        .sum::<f64>()
        / count)
        .sqrt()
}
