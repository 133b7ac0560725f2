//! The batch sizer that keeps what it learns: `facts/tuning.md` lists the faults it is made against.
//!
//! Up by steps that double while the prediction allows; down at once when the cap is broken; between a rung
//! that fits and one that does not by halves. What failed is tried again rarely, and where the load or the
//! cap has changed, at once.

use super::ladder::{Bounds, Patience, Rung, breach, mark, predict, record};
use super::terms::Terms;
use super::window::Observed;

/// A step up is tried although the prediction is so much above the cap: it is a prediction.
const DOUBT: f64 = 1.25;
/// Below this, batches are not full and larger ones would not be either.
const FULL: f64 = 0.9;

/// Where to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With this rung.
    At(usize),
    /// With this rung, and no rung keeps the cap.
    OverCap(usize),
    /// With this rung, and no rung that keeps the cap keeps the latency.
    TooSlow(usize),
}

/// A ladder of batch sizes.
#[derive(Clone, Debug)]
pub struct Robust {
    /// log2 of the batch sizes: power is near a straight line over it.
    logs: Vec<f64>,
    sizes: Vec<f64>,
    rungs: Vec<Rung>,
    /// Rungs that fit into memory.
    fitting: usize,
    stride: usize,
    saturation: f64,
    patience: Patience,
    /// Whether batches are full.
    full: bool,
    /// More than is served arrives, so that latency is a matter of speed.
    behind: bool,
}

impl Robust {
    pub fn new(terms: &Terms) -> Self {
        let sizes: Vec<f64> = terms.batches.iter().map(|size| *size as f64).collect();
        Self {
            logs: sizes.iter().map(|size| size.log2()).collect(),
            rungs: vec![Rung::default(); sizes.len()],
            fitting: sizes.len(),
            sizes,
            stride: 1,
            saturation: terms.saturation.get(),
            patience: Patience {
                soon: terms.probe.get(),
                expiry: terms.expiry.get(),
            },
            full: true,
            behind: false,
        }
    }

    /// Rungs from this one on do not fit into memory.
    pub fn bound(&mut self, rung: usize) {
        self.fitting = self.fitting.min(rung.max(1));
    }

    /// More arrives than is served.
    pub fn set_behind(&mut self, behind: bool) {
        self.behind = behind;
    }

    /// A whole window at a rung.
    pub fn window(&mut self, at: usize, observed: &Observed, bounds: &Bounds, now: f64) -> Verdict {
        let observed = self.relieved(observed, bounds);
        let keeps = observed.keeps(bounds);
        let rows = &mut [&mut self.rungs];
        record(rows, 0, at, &observed, bounds);
        mark(rows, 0, at, keeps, now, &self.patience);
        self.set_fill(observed.fill);
        match keeps {
            // Unlike what was known: seen once more before anything is made of it.
            true if self.rungs[at].odd => Verdict::At(at),
            true => self.choose(at, bounds, now),
            false => self.fall(at, bounds, now),
        }
    }

    /// The cap was broken before the window was whole.
    pub fn broken(&mut self, at: usize, power: f64, bounds: &Bounds, now: f64) -> Verdict {
        let ratio = breach(&mut self.rungs[at], power, bounds);
        mark(&mut [&mut self.rungs], 0, at, false, now, &self.patience);
        // The others may draw so many times more as well.
        let bounds = Bounds {
            cap: bounds.cap / ratio,
            ..*bounds
        };
        self.fall(at, &bounds, now)
    }

    /// Another cap, or another bound.
    pub fn rebound(&mut self, at: usize, bounds: &Bounds, now: f64) -> Verdict {
        self.rejudge(bounds, now);
        match self.rungs[at].seen && !self.rungs[at].keeps(bounds) {
            true => self.fall(at, bounds, now),
            false => self.choose(at, bounds, now),
        }
    }

    /// What is known, against other bounds.
    pub fn rejudge(&mut self, bounds: &Bounds, now: f64) {
        self.stride = 1;
        for rung in &mut self.rungs {
            rung.rejudge(bounds, now, self.patience.expiry);
        }
    }

    /// When the queue grows, its length is no fault of the batch size: a larger one serves faster.
    pub fn relieved(&self, observed: &Observed, bounds: &Bounds) -> Observed {
        match self.behind && 2.0 * observed.duration <= bounds.latency {
            true => Observed {
                p99: observed.duration,
                ..*observed
            },
            false => *observed,
        }
    }

    pub fn known_good(&self, bounds: Bounds) -> impl Iterator<Item = usize> + '_ {
        (0..self.fitting).filter(move |index| self.rungs[*index].is_good(&bounds))
    }

    pub fn set_fill(&mut self, fill: f64) {
        self.full = fill >= FULL;
    }

    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    pub fn fitting(&self) -> usize {
        self.fitting
    }

    /// The next size worth a try at another level: so many times as large, or the next.
    pub fn next_size(&self, at: usize, times: f64) -> Option<usize> {
        let most = times * self.sizes[at];
        let next = (at + 1..self.fitting).take_while(|index| self.sizes[*index] <= most);
        next.last()
            .or_else(|| Some(at + 1).filter(|next| *next < self.fitting))
    }

    pub fn predicted_power(&self, index: usize) -> Option<f64> {
        predict(&self.rungs, |at| self.logs[at], index, |rung| rung.power)
    }

    /// As measured.
    pub fn power_at(&self, index: usize) -> Option<f64> {
        Some(&self.rungs[index])
            .filter(|rung| rung.seen)
            .map(|rung| rung.power)
    }

    pub fn predicted_time_fits(&self, index: usize, bounds: &Bounds) -> bool {
        let time = predict(&self.rungs, |at| self.sizes[at], index, |rung| rung.p99);
        time.is_none_or(|time| time <= bounds.latency)
    }

    /// A larger size of this row, where one is worth a try.
    pub fn up_from(&mut self, at: usize, bounds: &Bounds, now: f64) -> Option<usize> {
        let top = self.known_good(*bounds).max().unwrap_or(at);
        self.up(top, bounds, now)
    }

    pub fn is_saturated_at(&self, at: usize, bounds: &Bounds) -> bool {
        self.is_saturated(at, bounds)
    }

    /// After a window that kept its bounds, or with other bounds.
    fn choose(&mut self, at: usize, bounds: &Bounds, now: f64) -> Verdict {
        let Some(top) = self.known_good(*bounds).max() else {
            return self.least(at, bounds, now);
        };
        if let Some(next) = self.up(top, bounds, now) {
            return Verdict::At(next);
        }
        let best = self.best(bounds).unwrap_or(at);
        // Between sizes that are alike it stays where it is.
        let stays = self.known_good(*bounds).any(|index| index == at)
            && self.rungs[at].rate >= self.fastest(bounds) * (1.0 - 2.0 * self.saturation)
            && self.rungs[at].good > 1;
        Verdict::At(if stays { at } else { best })
    }

    fn fastest(&self, bounds: &Bounds) -> f64 {
        let rates = self.known_good(*bounds).map(|index| self.rungs[index].rate);
        rates.fold(0.0, f64::max)
    }

    /// The smallest that is as fast as the fastest.
    fn best(&self, bounds: &Bounds) -> Option<usize> {
        let fastest = self.fastest(bounds);
        self.known_good(*bounds)
            .find(|index| self.rungs[*index].rate >= fastest * (1.0 - self.saturation))
    }

    /// The next rung above what is known to be good, where there is one worth trying.
    fn up(&mut self, top: usize, bounds: &Bounds, now: f64) -> Option<usize> {
        if !self.full || self.is_saturated(top, bounds) {
            return None;
        }
        let closed = (top + 1..self.fitting).find(|index| {
            let rung = &self.rungs[*index];
            !rung.is_good(bounds) && !rung.is_untried(now)
        });
        let wanted = match closed {
            // What lies between is worth no more windows.
            Some(closed)
                if self.growth(top, bounds).is_some_and(|growth| {
                    growth * (self.logs[closed] - self.logs[top]) < self.saturation
                }) =>
            {
                return None;
            }
            Some(closed) => top + (closed - top) / 2,
            None => (top + self.stride).min(self.fitting - 1),
        };
        if wanted == top {
            return None;
        }
        let fits = |index: &usize| self.predicted_fits(*index, bounds, 1.0);
        let next = (top + 1..=wanted).rev().find(fits).or_else(|| {
            let next = top + 1;
            let may_fit = self.predicted_fits(next, bounds, DOUBT) || self.may_fit(next, bounds);
            may_fit.then_some(next)
        })?;
        self.stride = (self.stride * 2).min(self.rungs.len());
        Some(next)
    }

    /// The last step gained so little that all above would gain no more.
    fn is_saturated(&self, top: usize, bounds: &Bounds) -> bool {
        self.growth(top, bounds)
            .is_some_and(|growth| growth < self.saturation)
    }

    /// Throughput gained by the last doubling up to a rung.
    fn growth(&self, top: usize, bounds: &Bounds) -> Option<f64> {
        let below = self
            .known_good(*bounds)
            .filter(|index| *index < top)
            .last()?;
        let gain = self.rungs[top].rate / self.rungs[below].rate.max(1e-9) - 1.0;
        Some(gain / (self.logs[top] - self.logs[below]))
    }

    fn predicted_fits(&self, index: usize, bounds: &Bounds, doubt: f64) -> bool {
        let rung = &self.rungs[index];
        if rung.barred {
            // Its time to be tried again has come, whatever it drew then.
            return true;
        }
        let power = self.predicted_power(index);
        power.is_none_or(|power| power <= bounds.cap * doubt)
            && self.predicted_time_fits(index, bounds)
    }

    /// Where power grows with the batch size rather than with its logarithm, the straight line over the
    /// logarithm says too much of what lies below a size that broke the cap.
    fn may_fit(&self, index: usize, bounds: &Bounds) -> bool {
        let power = predict(&self.rungs, |at| self.sizes[at], index, |rung| rung.power);
        let is_between = self.rungs[index + 1..].iter().any(|rung| rung.seen);
        is_between
            && power.is_some_and(|power| power <= bounds.cap)
            && self.predicted_time_fits(index, bounds)
    }

    /// After a broken bound: the best of what is good, or half the way down.
    fn fall(&mut self, at: usize, bounds: &Bounds, now: f64) -> Verdict {
        self.stride = 1;
        if let Some(best) = self.best(bounds) {
            return Verdict::At(best);
        }
        let unseen = |index: &usize| !self.rungs[*index].seen;
        let below = (0..at.min(self.fitting)).rev().filter(unseen);
        let fits = |index: &usize| self.predicted_fits(*index, bounds, 1.0);
        let below: Vec<usize> = below.collect();
        let middle = at / 2;
        let next = below.iter().copied().find(fits);
        let next = next.map(|next| next.min(middle.max(1)));
        match next.or_else(|| below.iter().copied().find(|index| *index <= middle)) {
            Some(next) => Verdict::At(next),
            None => self.least(at, bounds, now),
        }
    }

    /// Nothing is known to keep the bounds: towards least power, and there it stays.
    fn least(&mut self, at: usize, bounds: &Bounds, now: f64) -> Verdict {
        let seen = (0..self.fitting).filter(|index| self.rungs[*index].seen);
        // Among equals it stays where it is.
        let drawn = |index: &usize| {
            let here = if *index == at { 0.98 } else { 1.0 };
            self.rungs[*index].power * here
        };
        let Some(least) = seen.min_by(|a, b| drawn(a).total_cmp(&drawn(b))) else {
            return Verdict::At(at.min(self.fitting - 1));
        };
        let near = [least.checked_sub(1), Some(least + 1)];
        let near = near
            .into_iter()
            .flatten()
            .filter(|next| *next < self.fitting);
        let mut open = near.filter(|next| self.rungs[*next].is_untried(now));
        let slow = self.rungs[least].power <= bounds.cap;
        // Where it is the latency, larger batches are no help.
        if let Some(next) = open.find(|next| !slow || *next < least) {
            return Verdict::At(next);
        }
        match slow {
            true => Verdict::TooSlow(least),
            false => Verdict::OverCap(least),
        }
    }
}

impl AsMut<[Rung]> for Robust {
    fn as_mut(&mut self) -> &mut [Rung] {
        &mut self.rungs
    }
}
