//! The energy that one channel of a meter measured in a time span.

use sweetspot_device::{MeterGap, MeterTrace};
use sweetspot_quantity::{Joules, Seconds};

use super::alignment::{Alignment, Candidate, candidates, summarise};
use super::counter::Counter;
use super::fast_power::{FastPower, FastView};
use super::samples::{Sample, decimal_step, meter_behaviour, samples};
use crate::math::Span;
use crate::math::energy::Z95;

/// How the energy of a meter was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterMethod {
    /// The sum of the meter's values of power.
    Samples,
    /// The difference of the meter's own energy counter, with values of power at the ends.
    Counter,
}

impl std::fmt::Display for MeterMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Samples => "meter samples",
            Self::Counter => "meter counter",
        })
    }
}

/// The energy by the other method, for comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeterCheck {
    /// The method of this energy.
    pub method: MeterMethod,
    /// The energy by this method.
    pub value: Joules,
    /// The 95 % confidence interval of this energy.
    pub interval95: (Joules, Joules),
}

/// The energy that one channel of a meter measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MeterEnergy {
    /// The name of the channel.
    pub name: String,
    /// The best estimate of the energy.
    pub value: Joules,
    /// The 95 % confidence interval, with the meter's accuracy, its delay and its averaging.
    pub interval95: (Joules, Joules),
    /// The method by which the value was computed.
    pub method: MeterMethod,
    /// The energy by the other method, if the meter has a counter too.
    pub check: Option<MeterCheck>,
    /// The meter's delay, where fast sensors showed it.
    pub alignment: Option<Alignment>,
    /// The part of the time span that the readings cover.
    pub covered: Span,
    /// The times without readings within the span.
    pub gaps: Vec<MeterGap>,
    /// Remarks about the reliability of the value.
    pub notes: Vec<String>,
}

/// The reason why a meter's energy is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeterEnergyError {
    /// The meter has too few readings.
    #[error(
        "the meter {name} has no readings for the {window:.1} that were to be measured{reason}"
    )]
    NoReadings {
        /// The name of the meter.
        name: String,
        /// The length of the time span.
        window: String,
        /// Why, if it is known, with a colon before it.
        reason: String,
    },
}

/// An energy and the variance of its error, in joules and joules squared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    pub value: f64,
    pub variance: f64,
}

/// The readings of a meter with everything that the estimates need, in seconds after an origin.
pub(super) struct Curve<'a> {
    samples: Vec<Sample>,
    fast: Option<FastView<'a>>,
    period: f64,
}

/// Computes the energy of a time span from the readings of a meter before, in and after it. `fast` is the power of
/// devices that are part of what the meter measures.
pub fn meter_energy(
    trace: &MeterTrace,
    fast: Option<&FastPower>,
    span: &Span,
) -> Result<MeterEnergy, MeterEnergyError> {
    let origin = span.begin;
    let length = span.length().get();
    let period = meter_behaviour(trace)
        .period
        .unwrap_or(trace.properties.period)
        .get();
    let curve = Curve {
        samples: samples(trace, origin),
        fast: fast.map(|fast| fast.view(origin)),
        period,
    };
    let window = trace.properties.window.map(Seconds::get);
    let all = candidates(
        &curve.samples,
        curve.fast,
        window,
        period,
        trace.properties.max_delay.get(),
    );
    let gaps: Vec<MeterGap> = trace
        .gaps
        .iter()
        .filter(|gap| gap.from < span.end && gap.to > span.begin)
        .cloned()
        .collect();
    let (begin, end) = curve
        .covered(&all, length)
        .ok_or_else(|| MeterEnergyError::NoReadings {
            name: trace.name.clone(),
            window: span.length().to_string(),
            reason: gaps
                .first()
                .or(trace.gaps.last())
                .map_or(String::new(), |gap| format!(": {}", gap.reason)),
        })?;
    let seconds = |time: f64| origin + Seconds::new(time);
    let missing: f64 = gaps
        .iter()
        .map(|gap| {
            overlap(
                (gap.from - origin).get(),
                (gap.to - origin).get(),
                begin,
                end,
            )
        })
        .sum();
    let resolution = decimal_step(curve.samples.iter().map(|sample| sample.power))
        .unwrap_or(0.0)
        .min(10.0);
    let of_samples = average(&all, |one| {
        curve.energy(one, begin, end, missing, resolution)
    });
    let counter = Counter::new(trace, origin);
    let mut notes = Vec::new();
    if counter.has_jumped {
        notes.push(format!(
            "the energy counter of {} jumped or was reset: only its power is used",
            trace.name
        ));
    }
    let of_counter = average(&all, |one| {
        counter.energy(&curve, one, begin, end, resolution)
    });
    let accuracy = trace.properties.accuracy.get();
    let offset = trace.properties.accuracy_offset.get() * (end - begin);
    let with_accuracy = |estimate: Estimate| {
        // The largest error is given; all errors up to it are equally likely.
        let gain = (accuracy * estimate.value + offset) / 3f64.sqrt();
        let half = Z95 * (estimate.variance + gain * gain).sqrt();
        (
            Joules::new((estimate.value - half).max(0.0)),
            Joules::new(estimate.value + half),
        )
    };
    let both = [
        (MeterMethod::Samples, of_samples),
        (MeterMethod::Counter, of_counter),
    ];
    let mut known: Vec<(MeterMethod, Estimate)> = both
        .into_iter()
        .filter_map(|(method, one)| Some((method, one?)))
        .collect();
    known.sort_by(|a, b| a.1.variance.total_cmp(&b.1.variance));
    let Some((method, best)) = known.first().copied() else {
        return Err(MeterEnergyError::NoReadings {
            name: trace.name.clone(),
            window: span.length().to_string(),
            reason: String::new(),
        });
    };
    let check = known.get(1).map(|(method, other)| MeterCheck {
        method: *method,
        value: Joules::new(other.value),
        interval95: with_accuracy(*other),
    });
    if let Some((_, other)) = known.get(1)
        && (other.value - best.value).abs() > 3.0 * (other.variance + best.variance).sqrt()
    {
        notes.push(format!(
            "the counter and the samples of {} differ by more than both uncertainties",
            trace.name
        ));
    }
    Ok(MeterEnergy {
        name: trace.name.clone(),
        value: Joules::new(best.value),
        interval95: with_accuracy(best),
        method,
        check,
        alignment: summarise(&all).filter(|_| fast.is_some()),
        covered: Span::new(seconds(begin).max(span.begin), seconds(end).min(span.end)),
        gaps,
        notes,
    })
}

/// Averages an estimate over all candidates; their differences are part of the variance.
fn average(
    all: &[Candidate],
    estimate: impl Fn(&Candidate) -> Option<Estimate>,
) -> Option<Estimate> {
    let all: Option<Vec<(f64, Estimate)>> = all
        .iter()
        .map(|one| Some((one.weight, estimate(one)?)))
        .collect();
    let all = all?;
    let total: f64 = all.iter().map(|(weight, _)| weight).sum();
    let mean = all
        .iter()
        .map(|(weight, one)| weight * one.value)
        .sum::<f64>()
        / total;
    let within = all
        .iter()
        .map(|(weight, one)| weight * one.variance)
        .sum::<f64>()
        / total;
    let between = all
        .iter()
        .map(|(weight, one)| weight * (one.value - mean).powi(2))
        .sum::<f64>()
        / total;
    Some(Estimate {
        value: mean,
        variance: within + between,
    })
}

/// The length that two spans have in common.
fn overlap(from: f64, to: f64, begin: f64, end: f64) -> f64 {
    (to.min(end) - from.max(begin)).max(0.0)
}

impl Curve<'_> {
    /// The part of a time span from 0 to `length` for which there are readings, at the likeliest delay.
    fn covered(&self, all: &[Candidate], length: f64) -> Option<(f64, f64)> {
        let best = all.iter().max_by(|a, b| a.weight.total_cmp(&b.weight))?;
        let late = |sample: &Sample| sample.at - best.delay;
        let margin = 1.5 * self.period;
        let begin = self.samples.first().map(late)? - best.window - margin;
        let end = self.samples.last().map(late)? + margin;
        let covered = (begin.max(0.0), end.min(length));
        (covered.0 < covered.1).then_some(covered)
    }

    /// What the fast power does not explain: at the middle of each value's averaging time, in watts.
    fn residuals(&self, one: &Candidate) -> Vec<(f64, f64)> {
        let residual = |sample: &Sample| {
            let window = sample.window.unwrap_or(one.window);
            let end = sample.at - one.delay;
            let explained = self
                .fast
                .map_or(0.0, |fast| one.gain * fast.mean(end - window, end));
            (end - 0.5 * window, sample.power - explained)
        };
        self.samples.iter().map(residual).collect()
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
        let residuals = self.residuals(one);
        let shape = self.fast.map_or(0.0, |fast| {
            one.gain * (fast.energy_until(end) - fast.energy_until(begin))
        });
        let value = shape + integrate(&residuals, begin, end)?;
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
        let edges = 2.0 * (noise * self.period).powi(2) + 2.0 * (spread * blur).powi(2);
        let variance = noise * noise * self.period * length
            + edges
            + rounding * rounding
            + (spread * missing).powi(2);
        Some(Estimate { value, variance })
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
