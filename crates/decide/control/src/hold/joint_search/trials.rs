//! Chooses the settings to try next, and limits the number of trials.

use super::{GridPosition, JointSearch, MIN_IMPROVEMENT};
use crate::hold::candidate::OperatingLimits;
use crate::hold::config::HoldGoal;

/// The maximum number of settings that are tried before the load or the cap changes; then the best setting stays.
const TRIALS: u32 = 9;
/// The same if the device keeps the cap: a trial there exceeds it rarely.
const TRIALS_BELOW_DEVICE_CAP: u32 = 15;
/// The number of trials that are allowed again whenever the wait for retries is over.
const RETRY_TRIALS: u32 = 2;
/// The minimum number of trials that are allowed after a good setting exceeded the cap.
const TRIALS_AFTER_LOSS: u32 = 3;
/// A larger batch is not tried again once it has failed at more levels than this.
const MAX_FAILED_LEVELS: usize = 2;
/// A level is tried if its predicted power is at most this multiple of the cap, because predictions may be wrong.
const PREDICTION_MARGIN: f64 = 1.02;
/// A higher level is tried only for settings whose score is at least this share of the best score.
const MIN_SCORE_SHARE: f64 = 0.85;
/// When a larger batch is tried at a lower level, the batch size grows by these factors, tried in this order.
const TRADE_FACTORS: [f64; 2] = [8.0, 2.0];
/// If the objective is energy, a trial lowers the device level by the number of levels divided by this.
const LEVEL_STEPS: usize = 12;

/// How many settings may still be tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialBudget {
    /// The number of trials that are left.
    left: u32,
    /// The number of trials under one load and cap.
    most: u32,
    /// The time from which further trials are allowed, in seconds.
    refill_at: f64,
}

impl TrialBudget {
    pub(super) fn new(is_kept_by_device: bool) -> Self {
        let most = match is_kept_by_device {
            true => TRIALS_BELOW_DEVICE_CAP,
            false => TRIALS,
        };
        Self {
            left: most,
            most,
            refill_at: f64::INFINITY,
        }
    }

    /// Allows all trials again, because the load or the limits changed.
    pub(super) fn reset(&mut self) {
        self.left = self.most;
    }

    /// Allows some trials after a good setting exceeded the cap.
    pub(super) fn extend_after_loss(&mut self) {
        self.left = self.left.max(TRIALS_AFTER_LOSS);
    }

    /// Uses one trial, and sets the time from which further ones are allowed.
    pub(super) fn spend(&mut self, refill_at: f64) {
        self.left -= 1;
        self.refill_at = refill_at;
    }

    /// Ends the trials until this time.
    pub(super) fn end(&mut self, refill_at: f64) {
        if self.left > 0 {
            (self.left, self.refill_at) = (0, refill_at);
        }
    }

    /// Whether a trial is left, after allowing further ones if it is time.
    fn is_available(&mut self, now: f64) -> bool {
        if self.left == 0 && now >= self.refill_at {
            self.left = RETRY_TRIALS;
        }
        self.left > 0
    }
}

impl JointSearch {
    /// A setting to try because it may be better than the best one; `None` if there is none or no trial is left.
    pub(super) fn next_trial(
        &mut self,
        best: GridPosition,
        limits: &OperatingLimits,
        now: f64,
    ) -> Option<GridPosition> {
        if !self.trials.is_available(now) {
            return None;
        }
        if let Some(next) = self.below_lost(best, limits) {
            return Some(next);
        }
        if let Some(next) = self.without_device_cap(best, limits) {
            self.rows[next.level].allow_doubling(next.batch);
            return Some(next);
        }
        let power = match self.is_kept_by_device(best.level, limits) {
            // Whatever the batch size, the device keeps its own cap.
            true => f64::INFINITY,
            false => limits.cap,
        };
        let limits_of_batch = OperatingLimits {
            cap: power,
            ..*limits
        };
        let row = &mut self.rows[best.level];
        let doubled = match power.is_infinite() {
            true => row.doubled(best.batch, &limits_of_batch),
            false => None,
        };
        // Between the user's cap and the highest level, a larger batch is chosen by its power at the highest one.
        let is_between = power.is_finite() && self.exceeds_cap && best.level < self.highest_level;
        let larger = doubled.or_else(|| row.next_above(best.batch, &limits_of_batch, now));
        if let Some(batch) = larger.filter(|_| !is_between) {
            return Some(GridPosition { batch, ..best });
        }
        self.higher_level(best, limits, now)
            .or_else(|| self.larger_batch_at_lower_level(best, limits, now))
            .or_else(|| self.larger_batch_below_peak(best, limits))
            .or_else(|| self.lower_level(best, limits))
    }

    /// The next lower level of the good setting that exceeded the cap, at the same batch size.
    fn below_lost(&mut self, best: GridPosition, limits: &OperatingLimits) -> Option<GridPosition> {
        let fitting = self.rows[best.level].fitting();
        let lost = self.lost.take().filter(|lost| lost.batch < fitting)?;
        let mut below = (0..lost.level)
            .rev()
            .filter(|level| self.is_allowed(*level))
            .map(|level| GridPosition { level, ..lost });
        let next = below.find(|next| self.fits(*next, limits, 1.0));
        next.filter(|next| !self.candidate(*next).is_tried())
    }

    /// A higher level of a good setting that may beat the best one.
    fn higher_level(
        &self,
        best: GridPosition,
        limits: &OperatingLimits,
        now: f64,
    ) -> Option<GridPosition> {
        if self.goal == HoldGoal::EnergyPerItem {
            return None;
        }
        let levels = self.levels.values();
        let best_score = self.score(best);
        let may_be_tried = |next: &GridPosition| {
            let candidate = self.candidate(*next);
            candidate.may_be_tried(now)
                && (candidate.is_tried() || self.fits(*next, limits, PREDICTION_MARGIN))
        };
        let trials = self.good_positions(limits).filter_map(|from| {
            let score = self.score(from);
            if score < MIN_SCORE_SHARE * best_score || self.needs_no_higher_level(from, limits) {
                return None;
            }
            let mut higher = (from.level + 1..levels.len())
                .rev()
                .map(|level| GridPosition { level, ..from })
                .filter(|next| self.is_allowed(next.level));
            let next = higher.find(may_be_tried)?;
            let expected = score * levels[next.level] / levels[from.level];
            (expected > best_score * MIN_IMPROVEMENT).then_some((next, expected))
        });
        let most_promising = trials.max_by(|a, b| a.1.total_cmp(&b.1));
        most_promising.map(|(next, _)| next)
    }

    /// A larger batch than the best setting's, at the lower device level that keeps its power below the cap.
    fn larger_batch_at_lower_level(
        &self,
        best: GridPosition,
        limits: &OperatingLimits,
        now: f64,
    ) -> Option<GridPosition> {
        let row = &self.rows[best.level];
        if self.levels.are_power_caps() || row.is_saturated(best.batch, limits) {
            return None;
        }
        TRADE_FACTORS.into_iter().find_map(|factor| {
            let batch = row.larger_candidate(best.batch, factor)?;
            let rows = self.rows.iter();
            let failed = rows.filter(|row| row.candidates()[batch].is_barred());
            if failed.count() > MAX_FAILED_LEVELS {
                return None;
            }
            let mut lower = (0..best.level)
                .rev()
                .filter(|level| self.is_allowed(*level))
                .map(|level| GridPosition { batch, level });
            let next = lower.find(|next| self.fits(*next, limits, 1.0))?;
            self.candidate(next).may_be_tried(now).then_some(next)
        })
    }

    /// A lower device level at the best setting's batch size; only if the objective is energy.
    fn lower_level(&self, best: GridPosition, limits: &OperatingLimits) -> Option<GridPosition> {
        if self.goal == HoldGoal::Throughput {
            return None;
        }
        let levels = self.levels.values();
        let stride = (levels.len() / LEVEL_STEPS).max(1);
        let level = best.level.checked_sub(stride)?;
        let next = GridPosition { level, ..best };
        let p99 = self.candidate(best).p99()?;
        let slower_p99 = p99 * levels[best.level] / levels[level].max(1e-9);
        let is_open = !self.candidate(next).is_tried() && self.is_allowed(level);
        (is_open && slower_p99 <= limits.latency).then_some(next)
    }
}
