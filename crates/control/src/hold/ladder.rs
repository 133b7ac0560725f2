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
    /// It was tried.
    pub seen: bool,
    /// A whole window was seen of it; without, only its power is known.
    pub measured: bool,
    /// Its last window was unlike those before: another load, or chance.
    pub odd: bool,
    /// Its power was seen after that of the others, perhaps under another load.
    pub newer: bool,
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
    /// It broke them, and waits to be tried again.
    pub barred: bool,
    /// Times that it broke them under this load.
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

    /// Measured, keeps its bounds, and does not wait.
    pub fn is_good(&self, bounds: &Bounds) -> bool {
        self.measured && !self.barred && self.keeps(bounds)
    }

    /// Never tried, or its time to be tried again has come.
    pub fn is_untried(&self, now: f64) -> bool {
        !self.seen || (self.barred && now >= self.retry_at)
    }

    /// As if it had not failed; of what was never seen for a whole window nothing is left.
    fn forgive(&mut self) {
        match self.measured {
            true => (self.barred, self.failures) = (false, 0),
            false => *self = Self::default(),
        }
    }

    /// Against other bounds.
    pub fn rejudge(&mut self, bounds: &Bounds, now: f64, expiry: f64) {
        if self.keeps(bounds) {
            self.forgive();
        } else if self.seen && !self.barred {
            self.barred = true;
            self.failures = 1;
            self.retry_at = now + expiry;
        }
    }

    /// How this window differs from what was known, in power and in throughput; nothing where it does not.
    fn difference(&self, observed: &Observed) -> Option<(f64, f64)> {
        if !self.measured {
            return None;
        }
        let power = ratio(observed.mean, self.mean);
        let rate = ratio(observed.rate, self.rate);
        let differs = |ratio: f64| (ratio - 1.0).abs() > ANOTHER_LOAD;
        (differs(power) || differs(rate)).then_some((power, rate))
    }

    /// Throughput is told apart by half percents and is taken as a running mean. The highest power of a window
    /// is not the highest there is.
    fn take(&mut self, observed: &Observed, is_like: bool) {
        let weight = if is_like && self.measured { 0.5 } else { 1.0 };
        self.rate += weight * (observed.rate - self.rate);
        self.mean += weight * (observed.mean - self.mean);
        self.power = match is_like && self.measured && !self.barred {
            true => observed.power.max(0.9 * self.power + 0.1 * observed.power),
            false => observed.power,
        };
        (self.seen, self.measured, self.odd) = (true, true, false);
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
    fn fail(&mut self, now: f64, patience: &Patience) {
        let wait = match (self.failures, self.good) {
            (0, 2..) => patience.soon,
            (failures, _) if failures >= MOST_FAILURES => f64::INFINITY,
            (failures, _) => patience.expiry * 4f64.powi(i32::from(failures)),
        };
        self.barred = true;
        self.failures = self.failures.saturating_add(1);
        self.retry_at = now + wait;
        self.good = 0;
    }
}

/// Records a window at rung `at` of row `row`. When a second window in a row is unlike what was known, the load
/// has become another one: what is known of all other rungs is scaled with it, and failures that this makes
/// good are forgotten. Whether it has.
pub fn record<R: AsMut<[Rung]>>(
    rows: &mut [R],
    row: usize,
    at: usize,
    observed: &Observed,
    bounds: &Bounds,
) -> bool {
    let rung = &mut rows[row].as_mut()[at];
    let Some((power, rate)) = rung.difference(observed) else {
        rung.take(observed, true);
        return false;
    };
    if !rung.odd {
        rung.odd = true;
        (rung.power, rung.p99) = (observed.power, observed.p99);
        return false;
    }
    for rung in rows.iter_mut().flat_map(|rungs| rungs.as_mut()) {
        if rung.seen && !rung.newer {
            rung.scale(power, rate);
            if rung.keeps(bounds) {
                rung.forgive();
            }
        }
        rung.newer = false;
    }
    rows[row].as_mut()[at].take(observed, false);
    true
}

/// The cap was broken at a rung. Where it was good, the load has grown or the reading is false: how many times
/// more it draws than was known.
pub fn breach(rung: &mut Rung, power: f64, bounds: &Bounds) -> f64 {
    let was_good = rung.measured && rung.keeps(bounds);
    let ratio = match was_good && power > rung.power * (1.0 + ANOTHER_LOAD) {
        true => ratio(power, rung.power),
        false => 1.0,
    };
    (rung.seen, rung.newer) = (true, was_good);
    rung.power = power.max(bounds.cap * (1.0 + 1e-9));
    ratio
}

fn ratio(now: f64, before: f64) -> f64 {
    match before > 0.0 && now > 0.0 {
        true => (now / before).clamp(0.2, 5.0),
        false => 1.0,
    }
}

/// Marks that rung `at` of row `row` kept its bounds, or not; a failure puts off the trial of all that wait.
pub fn mark<R: AsMut<[Rung]>>(
    rows: &mut [R],
    row: usize,
    at: usize,
    keeps: bool,
    now: f64,
    patience: &Patience,
) {
    let rung = &mut rows[row].as_mut()[at];
    if keeps {
        rung.good = rung.good.saturating_add(1);
        // Where it stays for want of a better one, one good window is not enough.
        rung.barred &= now < rung.retry_at;
        return;
    }
    for rung in rows.iter_mut().flat_map(|rungs| rungs.as_mut()) {
        if rung.barred {
            rung.retry_at = rung.retry_at.max(now + patience.expiry);
        }
    }
    rows[row].as_mut()[at].fail(now, patience);
}

/// How long something waits that failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// The first time, if it had been good for long.
    pub soon: f64,
    /// Otherwise; and ever longer.
    pub expiry: f64,
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
