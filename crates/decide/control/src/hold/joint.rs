//! Batch size and a knob of the device together: up to saturation or the latency bound with the batch size,
//! and the level of the device that the cap then allows.
//!
//! A grid of settings is explored from the best one known: a larger batch at its level, a higher level, a
//! larger batch at a lower level, and for energy a lower level. Each is tried once under one load and cap.

use super::holder::Place;
use super::ladder::{Bounds, Failure, Patience, Rung, Shown, breach, learn, mark};
use super::robust::{Robust, Verdict};
use super::terms::{DeviceKnob, Goal, Terms};
use super::window::Observed;

/// A level that is predicted to draw so much more than the cap is tried all the same.
const DOUBT: f64 = 1.02;
/// Without other knowledge, so much of a setting's power does not follow its clock.
const STATIC_PART: f64 = 0.35;
/// Settings this much worse than the best are worth a higher level.
const NEAR: f64 = 0.85;
/// A setting must be this much better to be moved to.
const BETTER: f64 = 1.003;

/// Settings tried under one load and cap before it makes do with the best of them, and how many more each time
/// that what failed may be tried again.
const TRIALS: u32 = 9;
const MORE_TRIALS: u32 = 2;
/// And after a setting that was good has broken the cap.
const AFTER_BREACH: u32 = 3;
/// Levels of a larger batch that broke the cap before it is given up.
const MOST_LEVELS: usize = 2;

/// A grid of batch sizes and levels.
#[derive(Clone, Debug)]
pub struct Joint {
    /// One ladder of batch sizes for each level.
    rows: Vec<Robust>,
    /// Clocks or caps of the levels.
    levels: Vec<f64>,
    is_cap: bool,
    goal: Goal,
    idle: Option<f64>,
    patience: Patience,
    /// The only level, where the device refuses others.
    frozen: Option<usize>,
    /// The highest level that is used: a device's own cap is never above the one to hold.
    highest: usize,
    /// Settings that may still be tried, and when there will be more.
    trials: u32,
    more_at: f64,
    /// A setting that was good and broke the cap: its next lower level may be good.
    lost: Option<Place>,
}

impl Joint {
    pub fn new(terms: &Terms) -> Self {
        let levels: Vec<f64> = match &terms.knob {
            DeviceKnob::None => Vec::new(),
            DeviceKnob::CoreClock(levels) => levels.iter().map(|level| level.get()).collect(),
            DeviceKnob::PowerCap(levels) => levels.iter().map(|level| level.get()).collect(),
        };
        Self {
            rows: levels.iter().map(|_| Robust::new(terms)).collect(),
            levels,
            is_cap: matches!(terms.knob, DeviceKnob::PowerCap(_)),
            goal: terms.goal,
            idle: terms.idle.map(|idle| idle.get()),
            patience: Patience {
                soon: terms.probe.get(),
                // There are more settings that wait.
                expiry: 2.0 * terms.expiry.get(),
            },
            frozen: None,
            highest: usize::MAX,
            trials: TRIALS,
            more_at: f64::INFINITY,
            lost: None,
        }
    }

    /// The level to begin with.
    pub fn first_level(&mut self, cap: f64) -> usize {
        self.set_highest(cap);
        self.highest
    }

    fn set_highest(&mut self, cap: f64) {
        let fitting = match self.is_cap {
            true => self.levels.partition_point(|level| *level <= cap),
            false => self.levels.len(),
        };
        self.highest = fitting.saturating_sub(1);
    }

    pub fn bound(&mut self, rung: usize) {
        for row in &mut self.rows {
            row.bound(rung);
        }
    }

    pub fn freeze(&mut self, level: usize) {
        self.frozen = Some(level);
    }

    pub fn set_behind(&mut self, behind: bool) {
        for row in &mut self.rows {
            row.set_behind(behind);
        }
    }

    /// A whole window at a setting.
    pub fn window(
        &mut self,
        at: Place,
        observed: &Observed,
        bounds: &Bounds,
        now: f64,
    ) -> Verdict<Place> {
        let observed = self.rows[at.level].relieved(observed);
        if observed.power > bounds.cap {
            self.lose(at);
        }
        self.rows[at.level].set_full(observed.is_full());
        let place = (at.level, at.batch);
        let (shown, another) = learn(
            &mut self.rows,
            place,
            &observed,
            bounds,
            now,
            &self.patience,
        );
        if another {
            self.trials = TRIALS;
        }
        match shown {
            Shown::Unsure => Verdict::At(at),
            _ => self.choose(at, bounds, now),
        }
    }

    /// A setting that was good is good no more.
    fn lose(&mut self, at: Place) {
        let rung = self.rung(at);
        if rung.measured && !rung.barred {
            self.lost = Some(at);
            self.trials = self.trials.max(AFTER_BREACH);
        }
    }

    /// The cap was broken before the window was whole.
    pub fn broken(&mut self, at: Place, power: f64, bounds: &Bounds, now: f64) -> Verdict<Place> {
        self.lose(at);
        let rung = &mut self.rows[at.level].as_mut()[at.batch];
        let ratio = breach(rung, power, bounds);
        let rows = &mut self.rows;
        let failure = Some(Failure::by(power, bounds));
        mark(rows, (at.level, at.batch), failure, now, &self.patience);
        // The others may draw so many times more as well.
        let bounds = Bounds {
            cap: bounds.cap / ratio,
            ..*bounds
        };
        self.choose(at, &bounds, now)
    }

    /// Another cap, or another bound.
    pub fn rebound(&mut self, at: Place, bounds: &Bounds, now: f64) -> Verdict<Place> {
        for row in &mut self.rows {
            row.rejudge(bounds, now);
        }
        self.trials = TRIALS;
        self.set_highest(bounds.cap);
        let at = Place {
            level: at.level.min(self.highest),
            ..at
        };
        self.choose(at, bounds, now)
    }

    pub fn power_at(&self, at: Place) -> Option<f64> {
        self.rows[at.level].power_at(at.batch)
    }

    fn rung(&self, at: Place) -> &Rung {
        &self.rows[at.level].rungs()[at.batch]
    }

    fn is_free(&self, level: usize) -> bool {
        match self.frozen {
            Some(only) => level == only,
            None => level <= self.highest,
        }
    }

    fn good(&self, bounds: &Bounds) -> impl Iterator<Item = Place> + '_ {
        let bounds = *bounds;
        let rows = self.rows.iter().enumerate();
        let rows = rows.filter(|(level, _)| self.is_free(*level));
        rows.flat_map(move |(level, row)| {
            row.known_good(bounds)
                .map(move |batch| Place { batch, level })
        })
    }

    fn choose(&mut self, at: Place, bounds: &Bounds, now: f64) -> Verdict<Place> {
        let scored = self.good(bounds).map(|place| {
            // Where it is, is best among equals.
            let here = if place == at { BETTER } else { 1.0 };
            (place, here * self.rung(place).score(self.goal))
        });
        let Some((best, _)) = scored.max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return self.descend(at, bounds, now);
        };
        match self.trial(best, bounds, now) {
            Some(next) => {
                self.trials -= 1;
                self.more_at = now + self.patience.expiry;
                Verdict::At(next)
            }
            None => Verdict::At(best),
        }
    }

    /// What may be better than the best.
    fn trial(&mut self, best: Place, bounds: &Bounds, now: f64) -> Option<Place> {
        if self.trials == 0 && now >= self.more_at {
            self.trials = MORE_TRIALS;
        }
        if self.trials == 0 {
            return None;
        }
        let fitting = self.rows[best.level].fitting();
        if let Some(lost) = self.lost.take().filter(|lost| lost.batch < fitting) {
            let below = (0..lost.level).rev().filter(|level| self.is_free(*level));
            let mut below = below.map(|level| Place { level, ..lost });
            let next = below.find(|next| self.fits(*next, bounds, 1.0));
            if let Some(next) = next.filter(|next| !self.rung(*next).seen) {
                return Some(next);
            }
        }
        let larger = self.rows[best.level].up_from(best.batch, bounds, now);
        if let Some(batch) = larger {
            return Some(Place { batch, ..best });
        }
        self.higher(best, bounds, now)
            .or_else(|| self.trade(best, bounds, now))
            .or_else(|| self.lower(best, bounds))
    }

    /// A higher level of a good setting that may beat the best.
    fn higher(&self, best: Place, bounds: &Bounds, now: f64) -> Option<Place> {
        if self.goal == Goal::EnergyPerItem {
            return None;
        }
        let goal = self.rung(best).score(self.goal);
        let candidates = self.good(bounds).filter_map(|from| {
            let score = self.rung(from).score(self.goal);
            if score < NEAR * goal {
                return None;
            }
            let levels = (from.level + 1..self.levels.len()).rev();
            let next = levels
                .map(|level| Place { level, ..from })
                .filter(|next| self.is_free(next.level))
                .find(|next| {
                    let rung = self.rung(*next);
                    rung.is_untried(now) && (rung.seen || self.fits(*next, bounds, DOUBT))
                })?;
            let hoped = score * self.levels[next.level] / self.levels[from.level];
            (hoped > goal * BETTER).then_some((next, hoped))
        });
        let best = candidates.max_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(next, _)| next)
    }

    /// A larger batch at the level that the cap allows for it.
    fn trade(&self, best: Place, bounds: &Bounds, now: f64) -> Option<Place> {
        if self.is_cap || self.rows[best.level].is_saturated_at(best.batch, bounds) {
            return None;
        }
        // By far at first, and nearer where that was no better.
        [8.0, 2.0].into_iter().find_map(|times| {
            let batch = self.rows[best.level].next_size(best.batch, times)?;
            let failed = self.rows.iter().filter(|row| row.rungs()[batch].barred);
            if failed.count() > MOST_LEVELS {
                return None;
            }
            let levels = (0..best.level).rev().filter(|level| self.is_free(*level));
            let mut levels = levels.map(|level| Place { batch, level });
            let next = levels.find(|next| self.fits(*next, bounds, 1.0))?;
            self.is_untried(next, now).then_some(next)
        })
    }

    /// For energy: a lower level.
    fn lower(&self, best: Place, bounds: &Bounds) -> Option<Place> {
        if self.goal == Goal::Throughput {
            return None;
        }
        let stride = (self.levels.len() / 12).max(1);
        let level = best.level.checked_sub(stride)?;
        let next = Place { level, ..best };
        let slower = self.rung(best).p99 * self.levels[best.level] / self.levels[level].max(1e-9);
        let untried = !self.rung(next).seen && self.is_free(level);
        (untried && slower <= bounds.latency).then_some(next)
    }

    fn is_untried(&self, place: Place, now: f64) -> bool {
        self.rung(place).is_untried(now)
    }

    fn fits(&self, place: Place, bounds: &Bounds, doubt: f64) -> bool {
        let rung = self.rung(place);
        if rung.seen {
            return rung.is_good(bounds);
        }
        let is_below = |predicted: Option<f64>, bound| predicted.is_none_or(|value| value <= bound);
        is_below(self.predict(place), bounds.cap * doubt)
            && is_below(self.predicted_time(place), bounds.latency)
    }

    /// As a level knows it that is near and has seen more; at a lower clock all takes longer.
    fn predicted_time(&self, place: Place) -> Option<f64> {
        self.nearest(place.level, |row| row.predicted_time(place.batch))
            .map(|(level, time)| match self.is_cap {
                true => time,
                false => time * (self.levels[level] / self.levels[place.level]).max(1.0),
            })
    }

    /// What the nearest level says that can say something.
    fn nearest(&self, level: usize, of: impl Fn(&Robust) -> Option<f64>) -> Option<(usize, f64)> {
        let say = |level: usize| of(self.rows.get(level)?).map(|value| (level, value));
        (0..self.levels.len()).find_map(|away| {
            let below = level.checked_sub(away).and_then(say);
            below.or_else(|| say(level + away))
        })
    }

    /// Power at a setting that was not tried.
    fn predict(&self, place: Place) -> Option<f64> {
        if self.is_cap {
            let above = (place.level..self.levels.len())
                .find_map(|level| self.rows[level].power_at(place.batch));
            return above.map(|power| power.min(self.levels[place.level]));
        }
        let column = |level: usize| {
            let rung = &self.rows[level].rungs()[place.batch];
            rung.seen
                .then_some((self.levels[level].powi(2), rung.power))
        };
        let below = (0..place.level).rev().find_map(column);
        let mut above = (place.level + 1..self.levels.len()).filter_map(column);
        let x = self.levels[place.level].powi(2);
        let first = above.next();
        let pair = match (below, first) {
            (Some(below), Some(above)) => Some((below, above)),
            (None, Some(first)) => Some((first, above.next().unwrap_or_else(|| self.floor(first)))),
            (Some(below), None) => Some((below, self.floor(below))),
            (None, None) => None,
        };
        match pair {
            Some(((x0, y0), (x1, y1))) if x0 != x1 => Some(y0 + (y1 - y0) * (x - x0) / (x1 - x0)),
            // Nothing is known of this batch size: as the next smaller ones grew at a level near.
            _ => {
                let of = |row: &Robust| row.predicted_power(place.batch);
                let (level, power) = self.nearest(place.level, of)?;
                let clock = self.levels[level].powi(2);
                let (_, floor) = self.floor((clock, power));
                Some(floor + (power - floor) * x / clock)
            }
        }
    }

    /// What would be drawn at no clock at all.
    fn floor(&self, (_, power): (f64, f64)) -> (f64, f64) {
        let idle = self.idle.unwrap_or(STATIC_PART * power);
        (0.0, idle.min(power))
    }

    /// Nothing is known to keep the bounds: lower levels first, then smaller batches.
    fn descend(&mut self, at: Place, bounds: &Bounds, now: f64) -> Verdict<Place> {
        let at = Place {
            batch: at.batch.min(self.rows[at.level].fitting() - 1),
            ..at
        };
        let here = *self.rung(at);
        let too_slow = here.seen && here.power <= bounds.cap && here.p99 > bounds.latency;
        let smaller = |row: &Robust| {
            let half = (row.fitting() - 1).min(at.batch / 2);
            (0..=half).rev().find(|batch| !row.rungs()[*batch].seen)
        };
        if too_slow {
            if let Some(batch) = smaller(&self.rows[at.level]) {
                return Verdict::At(Place { batch, ..at });
            }
            return Verdict::TooSlow(Place { batch: 0, ..at });
        }
        let below = (0..at.level).rev().filter(|level| self.is_free(*level));
        let below = below.map(|level| Place { level, ..at });
        let below: Vec<Place> = below.filter(|place| self.is_untried(*place, now)).collect();
        let fitting = below.iter().find(|place| self.fits(**place, bounds, 1.0));
        if let Some(next) = fitting.or(below.last()) {
            return Verdict::At(*next);
        }
        let lowest = self.frozen.unwrap_or(0);
        if let Some(batch) = smaller(&self.rows[lowest]) {
            return Verdict::At(Place {
                batch,
                level: lowest,
            });
        }
        let fitting = self.rows[lowest].fitting();
        let seen = self.rows[lowest].rungs()[..fitting].iter().enumerate();
        let seen = seen.filter(|(_, rung)| rung.seen);
        let least = seen.min_by(|a, b| a.1.power.total_cmp(&b.1.power));
        Verdict::OverCap(Place {
            batch: least.map_or(0, |(batch, _)| batch),
            level: lowest,
        })
    }
}
