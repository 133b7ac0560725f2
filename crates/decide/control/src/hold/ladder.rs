//! What is known of each setting of a ladder: measured, scaled when the load changes, predicted between.

use super::terms::Goal;
use super::window::{Observed, SLIGHTLY};

/// A loss of this much power or throughput against what was known is another load.
const ANOTHER_LOAD: f64 = 0.03;
/// Beyond what was seen, power may grow faster than the last step says.
const STEEPER: f64 = 1.25;
/// Where windows scatter more than that, so many times their scatter.
const SCATTERS: f64 = 4.0;
/// A rung that fails again and again waits at most two to this times as long.
const MOST_DOUBLINGS: u8 = 3;

/// One setting.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rung {
    /// It was tried.
    pub seen: bool,
    /// A whole window was seen of it; without, only its power is known.
    pub measured: bool,
    /// By how much its last window differed from those before, in power and in throughput, if by much: another
    /// load, or chance.
    pub odd: Option<(f64, f64)>,
    /// Its last window was too slow, which may have been chance.
    pub slow: bool,
    /// Its batches were not full: full ones are served faster, and draw more.
    pub partial: bool,
    /// How windows scatter about their mean, in parts of it.
    pub scatter: f64,
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

    /// How good it is, by what is wanted.
    pub fn score(&self, goal: Goal) -> f64 {
        match goal {
            Goal::Throughput => self.rate,
            Goal::EnergyPerItem => self.rate / self.mean.max(1e-9),
        }
    }

    /// Measured, keeps its bounds, and does not wait.
    pub fn is_good(&self, bounds: &Bounds) -> bool {
        self.measured && !self.barred && self.keeps(bounds)
    }

    /// Never seen for a whole window, or its time to be tried again has come.
    pub fn is_untried(&self, now: f64) -> bool {
        match self.barred {
            true => self.is_due(now),
            false => !self.measured,
        }
    }

    /// It failed, and may be tried again.
    pub fn is_due(&self, now: f64) -> bool {
        self.barred && now >= self.retry_at
    }

    /// As if it had not failed.
    fn forgive(&mut self) {
        (self.barred, self.failures) = (false, 0);
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
        let most = ANOTHER_LOAD.max(SCATTERS * self.scatter);
        let differs = |ratio: f64| (ratio - 1.0).abs() > most;
        (differs(power) || differs(rate)).then_some((power, rate))
    }

    fn scatters(&mut self, observed: &Observed) {
        if self.measured {
            // A window that was odd and is not confirmed was chance.
            let (power, rate) = self.odd.unwrap_or_else(|| {
                let power = ratio(observed.mean, self.mean);
                (power, ratio(observed.rate, self.rate))
            });
            let off = (power - 1.0).abs().max((rate - 1.0).abs());
            self.scatter += 0.2 * (off - self.scatter);
        }
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
        (self.seen, self.measured, self.odd) = (true, true, None);
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

    /// A failure: tried again soon where it had been good for long and what was seen may be false, then ever more
    /// rarely.
    fn fail(&mut self, failure: Failure, now: f64, patience: &Patience) {
        if self.good > 1 && now - self.retry_at > patience.expiry {
            self.failures = 0;
        }
        let wait = match (self.failures, self.good, failure) {
            (0, 2.., Failure::Clear) => patience.soon,
            (failures, ..) => patience.expiry * f64::from(1_u32 << failures.min(MOST_DOUBLINGS)),
        };
        self.barred = true;
        self.failures = self.failures.saturating_add(1);
        self.retry_at = now + wait;
        self.good = 0;
    }
}

/// What a window shows of its rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It keeps its bounds.
    Keeps,
    /// It does not.
    Fails,
    /// It may have been chance, or says nothing of other rungs: it is seen once more.
    Unsure,
}

/// Learns from a window at rung `at` of row `row`; also whether the load has become another one.
pub fn learn<R: AsMut<[Rung]>>(
    rows: &mut [R],
    (row, at): (usize, usize),
    observed: &Observed,
    bounds: &Bounds,
    now: f64,
    patience: &Patience,
) -> (Shown, bool) {
    let keeps = observed.keeps(bounds);
    let rung = &mut rows[row].as_mut()[at];
    // One slow batch among ten may be chance.
    if !keeps && observed.power <= bounds.cap && !rung.slow {
        rung.slow = true;
        return (Shown::Unsure, false);
    }
    // Of batches that are not full nothing is learnt of other rungs.
    let full = observed.is_full();
    let mut another = false;
    if full || !rung.measured {
        another = record(rows, row, at, observed, bounds);
        rows[row].as_mut()[at].partial = !full;
    }
    let failure = (!keeps).then(|| Failure::by(observed.power, bounds));
    mark(rows, (row, at), failure, now, patience);
    let shown = match keeps {
        true if !full || rows[row].as_mut()[at].odd.is_some() => Shown::Unsure,
        true => Shown::Keeps,
        false => Shown::Fails,
    };
    (shown, another)
}

/// Records a window at rung `at` of row `row`. When a second window in a row is unlike what was known, and as the
/// first was, the load has become another one: what is known of all other rungs is scaled with it, and failures
/// that this makes good are forgotten. Whether it has.
fn record<R: AsMut<[Rung]>>(
    rows: &mut [R],
    row: usize,
    at: usize,
    observed: &Observed,
    bounds: &Bounds,
) -> bool {
    let rung = &mut rows[row].as_mut()[at];
    if rung.partial {
        rung.partial = false;
        rung.take(observed, false);
        return false;
    }
    let Some((power, rate)) = rung.difference(observed) else {
        rung.scatters(observed);
        rung.take(observed, true);
        return false;
    };
    if !rung
        .odd
        .is_some_and(|before| is_alike(before, (power, rate)))
    {
        rung.odd = Some((power, rate));
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

/// Two windows that differ from what was known in the same way.
fn is_alike(one: (f64, f64), other: (f64, f64)) -> bool {
    let near = |one: f64, other: f64| {
        (one / other - 1.0).abs() <= 0.5 * (one - 1.0).abs().max(ANOTHER_LOAD)
    };
    near(one.0, other.0) && near(one.1, other.1)
}

fn ratio(now: f64, before: f64) -> f64 {
    match before > 0.0 && now > 0.0 {
        true => (now / before).clamp(0.2, 5.0),
        false => 1.0,
    }
}

/// How a rung failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// By so little that it is no false reading.
    Slight,
    /// By more.
    Clear,
}

impl Failure {
    pub fn by(power: f64, bounds: &Bounds) -> Self {
        match power > bounds.cap && power <= bounds.cap * SLIGHTLY {
            true => Self::Slight,
            false => Self::Clear,
        }
    }
}

/// Marks that rung `at` of row `row` kept its bounds, or not; a failure puts off the trial of all that wait.
pub fn mark<R: AsMut<[Rung]>>(
    rows: &mut [R],
    (row, at): (usize, usize),
    failure: Option<Failure>,
    now: f64,
    patience: &Patience,
) {
    let rung = &mut rows[row].as_mut()[at];
    let Some(failure) = failure else {
        rung.good = rung.good.saturating_add(1);
        rung.slow = false;
        // Where it stays for want of a better one, one good window is not enough.
        rung.barred &= now < rung.retry_at;
        return;
    };
    for rung in rows.iter_mut().flat_map(|rungs| rungs.as_mut()) {
        if rung.barred {
            rung.retry_at = rung.retry_at.max(now + patience.expiry);
        }
    }
    rows[row].as_mut()[at].fail(failure, now, patience);
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
