//! The ladder that keeps what it learns: `facts/tuning.md` lists the faults it is made against. Its rungs are batch
//! sizes, or levels of the device at one batch size.
//!
//! Up by steps that double while the prediction allows; down at once when the cap is broken; between a rung
//! that fits and one that does not by halves. What failed is tried again rarely, and where the load or the
//! cap has changed, at once.

use super::ladder::{Bounds, Failure, Patience, Rung, Shown, breach, learn, mark, predict};
use super::terms::{Goal, Terms};
use super::window::Observed;

/// A step up is tried although the prediction is so much above the bound: it is a prediction.
const DOUBT: f64 = 1.25;
/// A step this large needs a prediction on the safe side.
const FAR: f64 = 2.0;

/// Where to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<Place = usize> {
    /// Here.
    At(Place),
    /// Here, and nothing keeps the cap.
    OverCap(Place),
    /// Here, and nothing that keeps the cap keeps the latency.
    TooSlow(Place),
}

impl<Place> Verdict<Place> {
    /// The same, of another kind of place.
    pub fn map<Other>(self, of: impl FnOnce(Place) -> Other) -> Verdict<Other> {
        match self {
            Self::At(place) => Verdict::At(of(place)),
            Self::OverCap(place) => Verdict::OverCap(of(place)),
            Self::TooSlow(place) => Verdict::TooSlow(of(place)),
        }
    }
}

/// A ladder.
#[derive(Clone, Debug)]
pub struct Robust {
    /// Batch sizes or clocks.
    values: Vec<f64>,
    /// Power is near a straight line over this, and surely not above one over [`Robust::safe`].
    usual: Vec<f64>,
    safe: Vec<f64>,
    rungs: Vec<Rung>,
    /// Rungs that fit into memory.
    fitting: usize,
    stride: usize,
    saturation: f64,
    goal: Goal,
    patience: Patience,
    /// Whether batches are full.
    full: bool,
    /// Requests wait that came when less was served: their latency is no fault of what is served now.
    behind: bool,
    /// The rung above which nothing was worth a try, and until when that stands: predictions waver.
    declined: Option<(usize, f64)>,
}

impl Robust {
    /// Of batch sizes.
    pub fn new(terms: &Terms) -> Self {
        let sizes: Vec<f64> = terms.batches.iter().map(|size| *size as f64).collect();
        let usual = sizes.iter().map(|size| size.log2()).collect();
        Self::over(terms, usual, sizes.clone(), sizes)
    }

    /// Of core clocks: power grows with their square, or as a cube where the voltage follows.
    pub fn of_clocks(terms: &Terms, clocks: Vec<f64>) -> Self {
        let to_the = |power: i32| clocks.iter().map(|clock| clock.powi(power)).collect();
        Self {
            stride: (clocks.len() / 16).max(1),
            ..Self::over(terms, to_the(2), to_the(3), clocks.clone())
        }
    }

    fn over(terms: &Terms, usual: Vec<f64>, safe: Vec<f64>, values: Vec<f64>) -> Self {
        Self {
            rungs: vec![Rung::default(); values.len()],
            fitting: values.len(),
            values,
            usual,
            safe,
            stride: 1,
            saturation: terms.saturation.get(),
            goal: terms.goal,
            patience: Patience {
                soon: terms.probe.get(),
                expiry: terms.expiry.get(),
            },
            full: true,
            behind: false,
            declined: None,
        }
    }

    /// Rungs from this one on do not fit into memory.
    pub fn bound(&mut self, rung: usize) {
        self.fitting = self.fitting.min(rung.max(1));
    }

    /// Whether requests wait that came when less was served.
    pub fn set_behind(&mut self, behind: bool) {
        self.behind = behind;
    }

    /// A whole window at a rung.
    pub fn window(&mut self, at: usize, observed: &Observed, bounds: &Bounds, now: f64) -> Verdict {
        let observed = self.relieved(observed);
        self.full = observed.is_full();
        let rows = &mut [&mut self.rungs];
        let (shown, another) = learn(rows, (0, at), &observed, bounds, now, &self.patience);
        if another {
            self.declined = None;
        }
        match shown {
            Shown::Unsure => Verdict::At(at),
            Shown::Keeps => self.choose(at, bounds, now),
            Shown::Fails => self.fall(at, bounds, now),
        }
    }

    /// The cap was broken before the window was whole.
    pub fn broken(&mut self, at: usize, power: f64, bounds: &Bounds, now: f64) -> Verdict {
        let ratio = breach(&mut self.rungs[at], power, bounds);
        let failure = Some(Failure::by(power, bounds));
        mark(
            &mut [&mut self.rungs],
            (0, at),
            failure,
            now,
            &self.patience,
        );
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
        (self.stride, self.declined) = (1, None);
        for rung in &mut self.rungs {
            rung.rejudge(bounds, now, self.patience.expiry);
        }
    }

    /// Of requests that wait from before, the latency is what those will have that come from now on: they wait
    /// for a batch, and go with the next.
    pub fn relieved(&self, observed: &Observed) -> Observed {
        match self.behind {
            true => Observed {
                p99: observed.p99.min(2.0 * observed.duration),
                ..*observed
            },
            false => *observed,
        }
    }

    pub fn known_good(&self, bounds: Bounds) -> impl Iterator<Item = usize> + '_ {
        (0..self.fitting).filter(move |index| self.rungs[*index].is_good(&bounds))
    }

    pub fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    pub fn fitting(&self) -> usize {
        self.fitting
    }

    /// The next size worth a try at another level: so many times as large, or the next.
    pub fn next_size(&self, at: usize, times: f64) -> Option<usize> {
        let most = times * self.values[at];
        let next = (at + 1..self.fitting).take_while(|index| self.values[*index] <= most);
        next.last()
            .or_else(|| Some(at + 1).filter(|next| *next < self.fitting))
    }

    pub fn predicted_power(&self, index: usize) -> Option<f64> {
        predict(&self.rungs, |at| self.usual[at], index, |rung| rung.power)
    }

    /// As measured.
    pub fn power_at(&self, index: usize) -> Option<f64> {
        Some(&self.rungs[index])
            .filter(|rung| rung.seen)
            .map(|rung| rung.power)
    }

    pub fn predicted_time(&self, index: usize) -> Option<f64> {
        predict(&self.rungs, |at| self.values[at], index, |rung| rung.p99)
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
            && self.score(at) >= self.highest_score(bounds) * (1.0 - 2.0 * self.saturation)
            && self.rungs[at].good > 1;
        Verdict::At(if stays { at } else { best })
    }

    fn score(&self, index: usize) -> f64 {
        self.rungs[index].score(self.goal)
    }

    fn highest_score(&self, bounds: &Bounds) -> f64 {
        let scores = self.known_good(*bounds).map(|index| self.score(index));
        scores.fold(0.0, f64::max)
    }

    /// The smallest that is as good as the best.
    fn best(&self, bounds: &Bounds) -> Option<usize> {
        let highest = self.highest_score(bounds);
        self.known_good(*bounds)
            .find(|index| self.score(*index) >= highest * (1.0 - self.saturation))
    }

    /// The next rung above what is known to be good, where there is one worth trying.
    fn up(&mut self, top: usize, bounds: &Bounds, now: f64) -> Option<usize> {
        if !self.full || self.is_saturated(top, bounds) || top + 1 >= self.fitting {
            return None;
        }
        let declined = self.declined.is_some_and(|(rung, _)| rung == top);
        let failed = |index: &usize| {
            let rung = &self.rungs[*index];
            rung.barred || rung.measured && !rung.keeps(bounds)
        };
        let next = match (top + 1..self.fitting).find(failed) {
            // What lies between is worth no more windows.
            Some(closed)
                if self.growth(top, bounds).is_some_and(|growth| {
                    growth * (self.values[closed] / self.values[top]).log2() < self.saturation
                }) =>
            {
                return None;
            }
            Some(closed) => (!declined)
                .then(|| self.between(top, closed, bounds))
                .flatten()
                .or_else(|| self.again(closed, now)),
            None => (!declined).then(|| self.beyond(top, bounds)).flatten(),
        };
        let next = next.or_else(|| self.dare(top, now));
        if next.is_some() {
            self.stride = (self.stride * 2).min(self.rungs.len());
        }
        next
    }

    /// A rung that failed, where its time has come; the others wait for what comes of it.
    fn again(&mut self, closed: usize, now: f64) -> Option<usize> {
        if !self.rungs[closed].is_due(now) {
            return None;
        }
        let others = self.rungs.iter_mut().enumerate();
        for (_, rung) in others.filter(|(index, rung)| *index != closed && rung.barred) {
            rung.retry_at = rung.retry_at.max(now + self.patience.expiry);
        }
        Some(closed)
    }

    /// Half the way to a rung that failed.
    fn between(&self, top: usize, closed: usize, bounds: &Bounds) -> Option<usize> {
        let middle = top + (closed - top) / 2;
        let fits = |index: &usize| {
            self.is_below(self.predicted_power(*index), bounds.cap)
                && self.is_below(self.predicted_time(*index), bounds.latency)
        };
        let next = (top + 1..=middle).rev().find(fits);
        next.or_else(|| Some(top + 1).filter(|next| *next <= middle && self.may_fit(*next, bounds)))
    }

    /// Where nothing above has failed.
    fn beyond(&self, top: usize, bounds: &Bounds) -> Option<usize> {
        let fits = |index: &usize| {
            let is_near = *index == top + 1 || self.values[*index] <= FAR * self.values[top];
            self.is_below(self.predicted_power(*index), bounds.cap)
                && (is_near || self.is_below(self.safe_power(*index), bounds.cap))
                && self.is_below(self.predicted_time(*index), bounds.latency)
        };
        let most = (top + self.stride).min(self.fitting - 1);
        let next = (top + 1..=most).rev().find(fits);
        next.or_else(|| Some(top + 1).filter(|next| self.may_fit(*next, bounds)))
    }

    /// Predictions may be wrong.
    fn may_fit(&self, index: usize, bounds: &Bounds) -> bool {
        self.is_below(self.predicted_power(index), DOUBT * bounds.cap)
            && self.is_below(self.predicted_time(index), DOUBT * bounds.latency)
    }

    fn is_below(&self, predicted: Option<f64>, bound: f64) -> bool {
        predicted.is_none_or(|predicted| predicted <= bound)
    }

    fn safe_power(&self, index: usize) -> Option<f64> {
        predict(&self.rungs, |at| self.safe[at], index, |rung| rung.power)
    }

    /// Now and then, whatever is predicted.
    fn dare(&mut self, top: usize, now: f64) -> Option<usize> {
        let next = &self.rungs[top + 1];
        if next.barred || next.measured {
            return None;
        }
        match self.declined {
            Some((rung, until)) if rung == top => (now >= until).then(|| {
                self.declined = None;
                top + 1
            }),
            _ => {
                self.declined = Some((top, now + self.patience.expiry));
                None
            }
        }
    }

    /// The last step gained so little that all above would gain no more.
    fn is_saturated(&self, top: usize, bounds: &Bounds) -> bool {
        self.growth(top, bounds)
            .is_some_and(|growth| growth < self.saturation)
    }

    /// Gained by the last doubling up to a rung.
    fn growth(&self, top: usize, bounds: &Bounds) -> Option<f64> {
        let below = self
            .known_good(*bounds)
            .filter(|index| *index < top)
            .last()?;
        let gain = self.score(top) / self.score(below).max(1e-9) - 1.0;
        Some(gain / (self.values[top] / self.values[below]).log2())
    }

    /// After a broken bound: the best of what is good, or half the way down.
    fn fall(&mut self, at: usize, bounds: &Bounds, now: f64) -> Verdict {
        self.stride = 1;
        if let Some(best) = self.best(bounds) {
            return Verdict::At(best);
        }
        let unseen = |index: &usize| !self.rungs[*index].seen;
        let below = (0..at.min(self.fitting)).rev().filter(unseen);
        let fits = |index: &usize| {
            self.is_below(self.predicted_power(*index), bounds.cap)
                && self.is_below(self.predicted_time(*index), bounds.latency)
        };
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
