//! The update period of a sensor and the schedule of its updates, from observed changes.

use sweetspot_device::Moment;
use sweetspot_quantity::{Ratio, Seconds};

use super::readings::Span;

/// Finds the update period of a sensor from the time spans in which its value changed; `None` if there are
/// fewer than three spans or no period fits. An update to the same value is not seen, so the time between two
/// changes is a multiple of the period.
pub fn update_period(changes: &[Span]) -> Option<Seconds> {
    let middles: Vec<f64> = changes.iter().map(|span| seconds(span.middle())).collect();
    let mut distances: Vec<f64> = middles
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .filter(|distance| *distance > 0.0)
        .collect();
    if distances.len() < 2 {
        return None;
    }
    distances.sort_by(f64::total_cmp);
    // Some reads come late; the first quartile is one period where most updates were seen.
    let interval = distances[distances.len() / 4];
    let blur = median(changes.iter().map(|span| span.length().get()).collect())?;
    let (mut time, mut updates) = (0.0, 0.0);
    for distance in &distances {
        let count = (distance / interval).round();
        if count < 1.0 || (distance - count * interval).abs() > 0.35 * interval + blur {
            return None;
        }
        // Over long distances the number of periods is uncertain.
        if count <= 5.0 {
            time += distance;
            updates += count;
        }
    }
    (updates >= 2.0).then(|| Seconds::new(time / updates))
}

/// The regular schedule of a sensor's updates, as fitted to observed changes, with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateSchedule {
    /// The time of one update in the middle of the observations, in seconds on the monotonic clock.
    origin: f64,
    period: f64,
    /// The variance of `origin`.
    origin_variance: f64,
    /// The variance of `period`.
    period_variance: f64,
    /// The covariance of `origin` and `period`.
    covariance: f64,
}

/// The fitted period differs from the nominal one by at most this fraction: a quartz crystal drives the
/// updates (100.000 ms on an H200).
const PERIOD_TOLERANCE: f64 = 1e-3;
/// The smallest assumed uncertainty of an update's time, in seconds, from jitter of driver and clock.
const MIN_JITTER: f64 = 0.000_2;
/// The number of candidate periods, less one, at each stage of the search.
const SEARCH_STEPS: i32 = 24;

/// One candidate period, and the phases (time offsets) of the schedule with which the most observed changes agree.
#[derive(Clone, Copy)]
struct Agreement {
    period: f64,
    count: usize,
    low: f64,
    high: f64,
}

impl UpdateSchedule {
    /// Fits a schedule with about this period to the time spans in which changes were seen; the spans must be
    /// in order of time. `None` if there are fewer than three spans, or more than a fifth of them disagree.
    ///
    /// The search starts with few spans, where the period hardly matters, to find the phase; more spans then
    /// determine the period. All pairs of period and phase that agree are equally likely: the result is their
    /// centre, and their spread is its uncertainty.
    pub fn fit(changes: &[Span], period: Seconds) -> Option<Self> {
        let nominal = period.get();
        let seen: Vec<(f64, f64)> = changes
            .iter()
            .filter(|span| span.length().get() < 0.95 * nominal && span.begin <= span.end)
            .map(|span| (seconds(span.begin), seconds(span.end)))
            .collect();
        if seen.len() < 3 {
            return None;
        }
        let middle = 0.5 * (seen[0].0 + seen[seen.len() - 1].1);
        let whole = 0.5 * (seen[seen.len() - 1].1 - seen[0].0);
        let (mut low, mut high) = (
            nominal * (1.0 - PERIOD_TOLERANCE),
            nominal * (1.0 + PERIOD_TOLERANCE),
        );
        // The search starts at the three spans that are nearest to each other.
        let nearest = seen
            .windows(3)
            .min_by(|a, b| (a[2].1 - a[0].0).total_cmp(&(b[2].1 - b[0].0)))
            .map_or(middle, |three| three[1].0);
        let farthest = whole + (nearest - middle).abs();
        let mut reach = 8.0 * nominal;
        let mut rounds = 3;
        loop {
            let begin = seen.partition_point(|(at, _)| *at < nearest - reach);
            let end = seen.partition_point(|(_, at)| *at <= nearest + reach);
            let candidates = best_periods(&seen[begin..end.max(begin + 1)], nearest, low, high);
            let step = (high - low) / f64::from(SEARCH_STEPS);
            let first = candidates.first()?.period;
            let last = candidates.last()?.period;
            if reach >= farthest {
                rounds -= 1;
                if rounds == 0 || candidates.len() > 8 {
                    return Self::from_candidates(&candidates, seen.len(), nearest, middle, step);
                }
            }
            // The true period may lie up to one grid step outside.
            (low, high) = ((first - step).max(low), (last + step).min(high));
            reach = (2.0 * reach).min(farthest);
        }
    }

    /// The centre and the spread of all pairs of period and phase that agree with the observations.
    fn from_candidates(
        candidates: &[Agreement],
        count: usize,
        reference: f64,
        middle: f64,
        step: f64,
    ) -> Option<Self> {
        if 5 * candidates.first()?.count < 4 * count {
            return None;
        }
        let usual = candidates[candidates.len() / 2].period;
        let updates = ((middle - reference) / usual).round();
        let (mut weights, mut phase, mut period) = (0.0, 0.0, 0.0);
        let at_middle =
            |found: &Agreement| 0.5 * (found.low + found.high) + updates * (found.period - usual);
        let weight = |found: &Agreement| (found.high - found.low).max(MIN_JITTER);
        for found in candidates {
            weights += weight(found);
            phase += weight(found) * at_middle(found);
            period += weight(found) * found.period;
        }
        (phase, period) = (phase / weights, period / weights);
        let (mut pp, mut tt, mut pt) = (MIN_JITTER * MIN_JITTER, step * step / 12.0, 0.0);
        for found in candidates {
            let share = weight(found) / weights;
            let (p, t) = (at_middle(found) - phase, found.period - period);
            pp += share * (p * p + weight(found).powi(2) / 12.0);
            tt += share * t * t;
            pt += share * p * t;
        }
        Some(Self {
            origin: reference + updates * usual + phase,
            period,
            origin_variance: pp,
            period_variance: tt,
            covariance: pt,
        })
    }

    /// The uncertainty of the time of an update near a moment, as the half-width of a uniform distribution.
    pub fn uncertainty(&self, near: Moment) -> Seconds {
        let updates = (seconds(near) - self.origin) / self.period;
        let variance = self.origin_variance
            + 2.0 * updates * self.covariance
            + updates * updates * self.period_variance;
        Seconds::new((3.0 * variance.max(MIN_JITTER * MIN_JITTER)).sqrt())
    }

    /// The time of the only scheduled update within a span, with its uncertainty; `None` if there is no update
    /// or more than one.
    pub fn update_in(&self, span: &Span) -> Option<Span> {
        let uncertainty = self.uncertainty(span.begin).get();
        let (low, high) = (seconds(span.begin), seconds(span.end));
        let first = ((low - uncertainty - self.origin) / self.period).ceil();
        let last = ((high + uncertainty - self.origin) / self.period).floor();
        if first != last {
            return None;
        }
        let tick = self.origin + self.period * last;
        Some(Span::new(
            moment(tick - uncertainty),
            moment(tick + uncertainty),
        ))
    }

    /// The time of the first scheduled update after a moment.
    pub fn next_after(&self, after: Moment) -> Moment {
        let updates = ((seconds(after) - self.origin) / self.period).floor() + 1.0;
        moment(self.origin + updates * self.period)
    }

    /// The relative standard deviation of the fitted period.
    pub fn period_deviation(&self) -> Ratio {
        Ratio::new(self.period_variance.sqrt() / self.period)
    }

    /// The fitted time between two updates.
    pub fn period(&self) -> Seconds {
        Seconds::new(self.period)
    }
}

/// Finds the periods between two bounds with which the most spans agree, with their phases relative to the
/// reference.
fn best_periods(seen: &[(f64, f64)], reference: f64, low: f64, high: f64) -> Vec<Agreement> {
    let mut candidates: Vec<Agreement> = (0..=SEARCH_STEPS)
        .map(|step| low + (high - low) * f64::from(step) / f64::from(SEARCH_STEPS))
        .map(|period| agreement(seen, reference, period))
        .collect();
    let most = candidates
        .iter()
        .map(|found| found.count)
        .max()
        .unwrap_or(0);
    candidates.retain(|found| found.count == most);
    // Phases are determined up to a period: they are moved to the same period.
    if let Some(first) = candidates.first().copied() {
        for found in &mut candidates {
            let turns = ((first.low - found.low) / found.period).round() * found.period;
            found.low += turns;
            found.high += turns;
        }
    }
    candidates
}

/// Finds the phases (time offsets) of updates with this period that agree with the most spans. A span agrees if an
/// update falls into it.
fn agreement(seen: &[(f64, f64)], reference: f64, period: f64) -> Agreement {
    let mut ends: Vec<(f64, i32)> = Vec::with_capacity(6 * seen.len());
    for (low, high) in seen {
        let shift = ((low - reference) / period).floor() * period + reference;
        for turn in [-period, 0.0, period] {
            ends.push((low - shift + turn, 1));
            ends.push((high - shift + turn, -1));
        }
    }
    ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let mut best = Agreement {
        period,
        count: 0,
        low: 0.0,
        high: 0.0,
    };
    let mut open = 0;
    for pair in ends.windows(2) {
        open += pair[0].1;
        let count = open.max(0) as usize;
        let inside = pair[0].0 >= -0.25 * period && pair[0].0 < 1.25 * period;
        let is_longer = count == best.count && pair[1].0 - pair[0].0 > best.high - best.low;
        if inside && (count > best.count || is_longer) {
            (best.count, best.low, best.high) = (count, pair[0].0, pair[1].0);
        }
    }
    best
}

/// The upper median of the values; `None` without values.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// A moment in seconds on the monotonic clock.
fn seconds(moment: Moment) -> f64 {
    moment.nanos() as f64 * 1e-9
}

/// The moment at this many seconds on the monotonic clock.
fn moment(seconds: f64) -> Moment {
    Moment::from_nanos((seconds.max(0.0) * 1e9).round() as u64)
}
