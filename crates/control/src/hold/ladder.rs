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

    fn take(&mut self, observed: &Observed) {
        self.seen = true;
        self.power = observed.power;
        self.mean = observed.mean;
        self.rate = observed.rate;
        self.p99 = observed.p99;
        self.duration = observed.duration;
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

/// Records a window at `rungs[at]`; where the load has become another one, what is known of the other rungs
/// is scaled with it, and failures that this makes good are forgotten.
pub fn record(rungs: &mut [Rung], at: usize, observed: &Observed, bounds: &Bounds) {
    let before = rungs[at];
    if before.seen {
        let power = ratio(observed.mean, before.mean);
        let rate = ratio(observed.rate, before.rate);
        let differs = |ratio: f64| (ratio - 1.0).abs() > ANOTHER_LOAD;
        if differs(power) || differs(rate) {
            for (index, rung) in rungs.iter_mut().enumerate() {
                if index != at && rung.seen {
                    rung.power *= power;
                    rung.mean *= power;
                    rung.rate *= rate;
                    rung.p99 /= rate;
                    rung.duration /= rate;
                    if rung.keeps(bounds) {
                        rung.failures = 0;
                    }
                }
            }
        }
    }
    rungs[at].take(observed);
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
