//! How often a sensor moves, learnt from watching it.

use sweetspot_device::Moment;
use sweetspot_quantity::{Ratio, Seconds};

use super::readings::Span;

/// The update period of a sensor from the stretches in which its changes were seen; unknown where there
/// are fewer than three or they fit no period. Values that did not change leave out beats, so distances are
/// multiples of the period.
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
    // A look comes late now and then; the first quartile is still one beat where most beats were seen.
    let beat = distances[distances.len() / 4];
    let blur = median(changes.iter().map(|span| span.length().get()).collect())?;
    let (mut time, mut beats) = (0.0, 0.0);
    for distance in &distances {
        let count = (distance / beat).round();
        if count < 1.0 || (distance - count * beat).abs() > 0.35 * beat + blur {
            return None;
        }
        // Over long distances the count itself is in doubt.
        if count <= 5.0 {
            time += distance;
            beats += count;
        }
    }
    (beats >= 2.0).then(|| Seconds::new(time / beats))
}

/// Regular beats, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lattice {
    /// A beat in the middle of those that were seen.
    origin: f64,
    period: f64,
    /// Variances of both, and their covariance.
    origin_variance: f64,
    period_variance: f64,
    covariance: f64,
}

/// Beats of these sensors are made by a crystal: 100.000 ms on an H200.
const TOLERANCE: f64 = 1e-3;
/// Never claimed to be known better: driver and clock jitter.
const FINEST: f64 = 0.000_2;
/// Periods tried at each stage of the search.
const TRIES: i32 = 24;

/// Phases, against a reference, that agree with the most stretches at one period.
#[derive(Clone, Copy)]
struct Agreement {
    period: f64,
    count: usize,
    low: f64,
    high: f64,
}

impl Lattice {
    /// The lattice with about this period that agrees with the most of the stretches, in order of time, in
    /// which changes were seen; nothing where there are fewer than three or a fifth of them disagree.
    ///
    /// Over a short time the period hardly matters and the phase is found; over ever longer times the
    /// period is. Every pair of period and phase that agrees is as good as any other: the middle of them is
    /// taken, and their spread says how well it is known.
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
        let (mut low, mut high) = (nominal * (1.0 - TOLERANCE), nominal * (1.0 + TOLERANCE));
        // From those that lie near each other outwards.
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
            let tried = search(&seen[begin..end.max(begin + 1)], nearest, low, high);
            let step = (high - low) / f64::from(TRIES);
            let first = tried.first()?.period;
            let last = tried.last()?.period;
            if reach >= farthest {
                rounds -= 1;
                if rounds == 0 || tried.len() > 8 {
                    return Self::of(&tried, seen.len(), nearest, middle, step);
                }
            }
            // A step of the search to either side may hold the truth as well.
            (low, high) = ((first - step).max(low), (last + step).min(high));
            reach = (2.0 * reach).min(farthest);
        }
    }

    /// From all that agree: the centre of the figure that they make, and its spread.
    fn of(
        tried: &[Agreement],
        count: usize,
        reference: f64,
        middle: f64,
        step: f64,
    ) -> Option<Self> {
        if 5 * tried.first()?.count < 4 * count {
            return None;
        }
        let usual = tried[tried.len() / 2].period;
        let beats = ((middle - reference) / usual).round();
        let (mut weights, mut phase, mut period) = (0.0, 0.0, 0.0);
        let at_middle =
            |found: &Agreement| 0.5 * (found.low + found.high) + beats * (found.period - usual);
        let weight = |found: &Agreement| (found.high - found.low).max(FINEST);
        for found in tried {
            weights += weight(found);
            phase += weight(found) * at_middle(found);
            period += weight(found) * found.period;
        }
        (phase, period) = (phase / weights, period / weights);
        let (mut pp, mut tt, mut pt) = (FINEST * FINEST, step * step / 12.0, 0.0);
        for found in tried {
            let share = weight(found) / weights;
            let (p, t) = (at_middle(found) - phase, found.period - period);
            pp += share * (p * p + weight(found).powi(2) / 12.0);
            tt += share * t * t;
            pt += share * p * t;
        }
        Some(Self {
            origin: reference + beats * usual + phase,
            period,
            origin_variance: pp,
            period_variance: tt,
            covariance: pt,
        })
    }

    /// How far a beat near a moment may be from where it is said to be: a uniform error of this size.
    pub fn slack(&self, near: Moment) -> Seconds {
        let beats = (seconds(near) - self.origin) / self.period;
        let variance = self.origin_variance
            + 2.0 * beats * self.covariance
            + beats * beats * self.period_variance;
        Seconds::new((3.0 * variance.max(FINEST * FINEST)).sqrt())
    }

    /// The beat within a stretch; nothing where there is none or more than one.
    pub fn tick_in(&self, span: &Span) -> Option<Span> {
        let slack = self.slack(span.begin).get();
        let (low, high) = (seconds(span.begin), seconds(span.end));
        let first = ((low - slack - self.origin) / self.period).ceil();
        let last = ((high + slack - self.origin) / self.period).floor();
        if first != last {
            return None;
        }
        let tick = self.origin + self.period * last;
        Some(Span::new(moment(tick - slack), moment(tick + slack)))
    }

    /// The first beat after a moment.
    pub fn next(&self, after: Moment) -> Moment {
        let beats = ((seconds(after) - self.origin) / self.period).floor() + 1.0;
        moment(self.origin + beats * self.period)
    }

    /// Deviation of the period, against itself.
    pub fn drift(&self) -> Ratio {
        Ratio::new(self.period_variance.sqrt() / self.period)
    }

    /// Between two beats.
    pub fn period(&self) -> Seconds {
        Seconds::new(self.period)
    }
}

/// The periods between two bounds that agree with the most stretches, in order, with their phases against
/// the reference.
fn search(seen: &[(f64, f64)], reference: f64, low: f64, high: f64) -> Vec<Agreement> {
    let mut tried: Vec<Agreement> = (0..=TRIES)
        .map(|step| low + (high - low) * f64::from(step) / f64::from(TRIES))
        .map(|period| agreement(seen, reference, period))
        .collect();
    let most = tried.iter().map(|found| found.count).max().unwrap_or(0);
    tried.retain(|found| found.count == most);
    // Phases are known up to a period: those of one branch belong together.
    if let Some(first) = tried.first().copied() {
        for found in &mut tried {
            let turns = ((first.low - found.low) / found.period).round() * found.period;
            found.low += turns;
            found.high += turns;
        }
    }
    tried
}

/// How many stretches hold a beat of the best phase, and the phases that do.
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

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn seconds(moment: Moment) -> f64 {
    moment.nanos() as f64 * 1e-9
}

fn moment(seconds: f64) -> Moment {
    Moment::from_nanos((seconds.max(0.0) * 1e9).round() as u64)
}
