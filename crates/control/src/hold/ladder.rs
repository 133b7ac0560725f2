//! What is known of each setting of a ladder: measured, scaled when the load changes, predicted between.

use super::window::Observed;

/// A loss of this much power or throughput against what was known is another load.
const ANOTHER_LOAD: f64 = 0.03;
/// Beyond what was seen, power may grow faster than the last step says.
const STEEPER: f64 = 1.25;
/// After so many failures of a rung under one load it is not tried again.
const MOST_FAILURES: u8 = 4;

/// One setting.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rung {
    /// The last time it was seen; what follows is empty without.
    pub seen: bool,
    /// The highest judged mean.
    pub power: f64,
    /// The mean.
    pub mean: f64,
    /// Items for each second of work.
    pub rate: f64,
    /// Of the latency.
    pub p99: f64,
    /// Of a batch.
    pub duration: f64,
    /// Windows that it kept its bounds in a row.
    pub good: u32,
    /// Times that it broke them.
    pub failures: u8,
    /// When it may be tried again after a failure.
    pub retry_at: f64,
}

/// The bounds that a setting has to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// On power.
    pub cap: f64,
    /// On latency.
    pub latency: f64,
}

impl Rung {
    /// As far as is known.
    pub fn keeps(&self, bounds: &Bounds) -> bool {
        self.power <= bounds.cap && self.p99 <= bounds.latency
    }

    /// Keeps its bounds, or may be tried again.
    pub fn is_open(&self, bounds: &Bounds, now: f64) -> bool {
        !self.seen || (self.failures == 0 && self.keeps(bounds)) || now >= self.retry_at
    }

    /// The newest says most; throughput is told apart by half percents and is taken as a running mean.
    fn take(&mut self, observed: &Observed) {
        let is_like = self.good > 0 && (self.rate / observed.rate - 1.0).abs() < ANOTHER_LOAD;
        self.rate = match is_like {
            true => 0.5 * (self.rate + observed.rate),
            false => observed.rate,
        };
        self.seen = true;
        self.power = observed.power;
        self.mean = observed.mean;
        self.p99 = observed.p99;
        self.duration = observed.duration;
    }

    fn scale(&mut self, power: f64, rate: f64) {
        self.power *= power;
        self.mean *= power;
        self.rate *= rate;
        self.p99 /= rate;
        self.duration /= rate;
    }

    /// A failure: tried again soon where it had been good for long, then ever more rarely.
    fn fail(&mut self, now: f64, soon: f64, expiry: f64) {
        let wait = match (self.failures, self.good) {
            (0, 2..) => soon,
            (failures, _) if failures >= MOST_FAILURES => f64::INFINITY,
            (failures, _) => expiry * 4f64.powi(i32::from(failures)),
        };
        self.failures = self.failures.saturating_add(1);
        self.retry_at = now + wait;
        self.good = 0;
    }
}

/// Records a window at rung `at` of row `row`; where the load has become another one, what is known of all
/// other rungs is scaled with it, and failures that this makes good are forgotten.
pub fn record_all<'a>(
    rows: impl Iterator<Item = &'a mut [Rung]>,
    row: usize,
    at: usize,
    observed: &Observed,
    bounds: &Bounds,
) {
    let mut rows: Vec<&mut [Rung]> = rows.collect();
    let before = rows[row][at];
    if before.seen {
        let power = ratio(observed.mean, before.mean);
        let rate = ratio(observed.rate, before.rate);
        let differs = |ratio: f64| (ratio - 1.0).abs() > ANOTHER_LOAD;
        if differs(power) || differs(rate) {
            for rung in rows.iter_mut().flat_map(|rungs| rungs.iter_mut()) {
                if rung.seen {
                    rung.scale(power, rate);
                    if rung.keeps(bounds) {
                        rung.failures = 0;
                    }
                }
            }
        }
    }
    rows[row][at].take(observed);
}

/// The cap was broken at a rung. Where it was good, the load has grown or the reading is false: all others are
/// taken to draw so many times more, which is given back.
pub fn breach(rung: &mut Rung, power: f64, bounds: &Bounds) -> f64 {
    let was_good = rung.seen && rung.keeps(bounds);
    let ratio = match was_good {
        true => ratio(power, rung.power).max(1.0),
        false => 1.0,
    };
    if !rung.seen {
        rung.seen = true;
        rung.mean = power;
    }
    rung.mean *= ratio;
    rung.power = power.max(bounds.cap * (1.0 + 1e-9));
    ratio
}

fn ratio(now: f64, before: f64) -> f64 {
    match before > 0.0 && now > 0.0 {
        true => (now / before).clamp(0.2, 5.0),
        false => 1.0,
    }
}

/// Marks what a window showed of `rungs[at]`: kept its bounds or not.
pub fn mark(rungs: &mut [Rung], at: usize, keeps: bool, now: f64, soon: f64, expiry: f64) {
    let rung = &mut rungs[at];
    if keeps {
        rung.good = rung.good.saturating_add(1);
        rung.failures = 0;
        rung.retry_at = f64::NEG_INFINITY;
    } else {
        rung.fail(now, soon, expiry);
    }
}

/// A value at `x` from what was seen, as a straight line between or beyond; beyond, it rises faster.
pub fn predict(
    rungs: &[Rung],
    x_of: impl Fn(usize) -> f64,
    target: usize,
    value: impl Fn(&Rung) -> f64,
) -> Option<f64> {
    if rungs[target].seen {
        return Some(value(&rungs[target]));
    }
    let below = (0..target).rev().filter(|index| rungs[*index].seen);
    let mut below = below.take(2);
    let first = below.next();
    let above = (target + 1..rungs.len()).find(|index| rungs[*index].seen);
    let (left, right, steeper) = match (first, above, below.next()) {
        (Some(left), Some(right), _) => (left, right, 1.0),
        (Some(right), None, Some(left)) => (left, right, STEEPER),
        _ => return None,
    };
    let (from, to) = (value(&rungs[left]), value(&rungs[right]));
    let slope = (to - from) / (x_of(right) - x_of(left));
    let slope = if slope > 0.0 { slope * steeper } else { slope };
    let (anchor, at) = match steeper > 1.0 {
        true => (to, x_of(right)),
        false => (from, x_of(left)),
    };
    Some(anchor + slope * (x_of(target) - at))
}
