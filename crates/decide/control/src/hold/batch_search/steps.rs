//! How the search along one axis chooses the next candidate.

use super::{BatchSearch, PausedClimb, SearchDecision};
use crate::hold::candidate::OperatingLimits;
use crate::hold::config::HoldGoal;

/// The next larger candidate is tried even if it is predicted to exceed a limit by up to this factor, because
/// predictions may be wrong.
const PREDICTION_MARGIN: f64 = 1.25;
/// The same for the latency, whose predictions are better.
const LATENCY_MARGIN: f64 = 1.03;
/// The same for the power of candidates whose mean powers are even, if the load alternates.
const EVEN_MARGIN: f64 = 1.02;
/// The number of larger candidates that may fail before no more of them are tried, if the load alternates.
const MAX_FAILURES: usize = 3;
/// By which share of the cap the predicted power must be lower after each failure of a larger candidate.
const FAILURE_MARGIN: f64 = 0.01;
/// The mean powers of a load that alternates are even if they differ from the average by at most this share of the cap.
const UNEVEN_POWER: f64 = 0.03;
/// Candidates are about equally fast if the slower one has at least this share of the other one's throughput.
const EQUAL_RATE: f64 = 0.993;
/// A device whose peaks are cut off takes about this many times as long for a batch.
const SLOWER: f64 = 1.02;
/// A step that multiplies the batch size or clock by more than this is taken only if a cautious prediction allows it.
const LARGE_STEP: f64 = 2.0;
/// The gain of a step is measured from a candidate that is smaller by at least this factor, if there is one.
const FAR_ENOUGH: f64 = 1.4;
/// After an excess, the power is brought below the cap by this factor if that costs little.
const POWER_MARGIN: f64 = 1.005;
/// The largest share of the throughput that this may cost.
const MARGIN_COST: f64 = 0.007;
/// When power is minimised, another candidate replaces the present one only if its power is below this share of the
/// present power.
const STAY_PREFERENCE: f64 = 0.98;

impl BatchSearch {
    /// Decides after a measurement window within the limits, or after a change of the limits.
    pub(super) fn choose(
        &mut self,
        index: usize,
        limits: &OperatingLimits,
        now: f64,
    ) -> SearchDecision {
        let Some(top) = self.good_candidates(*limits).max() else {
            return self.minimise_power(index, limits, now);
        };
        if let Some(next) = self.step_up(top, limits, now) {
            return SearchDecision::Use(next);
        }
        let best = self.best(limits).unwrap_or(index);
        // If several candidates are equally good, the search stays at the present one.
        let stays = self.good_candidates(*limits).any(|good| good == index)
            && self.score(index) >= self.highest_score(limits) * (1.0 - 2.0 * self.saturation)
            && self.candidates[index].good_windows() > 1;
        SearchDecision::Use(if stays { index } else { best })
    }

    /// The value of the objective at a candidate; higher is better.
    fn score(&self, index: usize) -> f64 {
        self.candidates[index].score(self.goal)
    }

    /// The highest score of the candidates that meet the limits; 0 if there are none.
    fn highest_score(&self, limits: &OperatingLimits) -> f64 {
        let scores = self.good_candidates(*limits).map(|index| self.score(index));
        scores.fold(0.0, f64::max)
    }

    /// The smallest candidate that meets the limits and is about as good as the best one.
    fn best(&self, limits: &OperatingLimits) -> Option<usize> {
        let highest = self.highest_score(limits);
        self.good_candidates(*limits)
            .find(|index| self.score(*index) >= highest * (1.0 - self.saturation))
    }

    /// The best candidate that leaves a little of the cap, if it is about as good as one that leaves nothing: the power
    /// may grow further while the device becomes warmer.
    pub(super) fn best_with_margin(&self, limits: &OperatingLimits) -> Option<usize> {
        let with_margin = limits.with_power_growth(POWER_MARGIN);
        let best = self.best(&with_margin)?;
        let least = self.highest_score(limits) * (1.0 - MARGIN_COST);
        (self.score(best) >= least).then_some(best)
    }

    /// A candidate above `top`, the largest good one, that is worth a trial.
    pub(super) fn step_up(
        &mut self,
        top: usize,
        limits: &OperatingLimits,
        now: f64,
    ) -> Option<usize> {
        if !self.has_full_batches || self.is_saturated(top, limits) || top + 1 >= self.fitting {
            return None;
        }
        let is_paused = self
            .paused
            .is_some_and(|paused| paused.top == top && now < paused.until);
        if self.swing > 0.0 && self.predicted_power(top + 1).is_some() {
            let next = (!is_paused).then(|| self.step_with_even_means(top, limits));
            if next == Some(None) {
                self.pause(top, now);
            }
            let is_barred = |index: &usize| self.candidates[*index].is_barred();
            let failed = (top + 1..self.fitting).find(is_barred);
            return next
                .flatten()
                .or_else(|| failed.and_then(|failed| self.retry(failed, now)));
        }
        let has_failed = |index: &usize| {
            let candidate = &self.candidates[*index];
            candidate.is_barred() || candidate.is_measured() && !candidate.meets(limits)
        };
        let is_slow = |index: &usize| !is_at_most(self.predicted_latency(*index), limits.latency);
        let is_impossible = |index: &usize| has_failed(index) || is_slow(index);
        let impossible = (top + 1..self.fitting).find(is_impossible);
        let gain = self.gain_per_doubling(top, limits);
        if let (Some(impossible), Some(gain)) = (impossible, gain)
            && gain * (self.values[impossible] / self.values[top]).log2() < self.saturation
        {
            // The candidates between the two would gain too little to be measured.
            return None;
        }
        let next = match (top + 1..self.fitting).find(has_failed) {
            Some(failed) => (!is_paused)
                .then(|| self.step_between(top, failed, limits))
                .flatten()
                .or_else(|| self.retry(failed, now)),
            None => (!is_paused)
                .then(|| self.step_beyond(top, limits))
                .flatten(),
        };
        let next = next.or_else(|| self.step_despite_prediction(top, now));
        if next.is_some() {
            self.stride = (self.stride * 2).min(self.candidates.len());
        }
        next
    }

    /// A candidate above `top` whose mean powers are even enough to stay below the cap, for a load that alternates. A
    /// failed candidate in between does not rule it out.
    fn step_with_even_means(&self, top: usize, limits: &OperatingLimits) -> Option<usize> {
        let is_near = |index: &usize| {
            *index == top + 1 || self.values[*index] <= LARGE_STEP * self.values[top]
        };
        let near = (top + 1..self.fitting).take_while(is_near);
        let failed = near.clone().filter(|at| self.candidates[*at].is_barred());
        let failures = failed.count();
        if failures >= MAX_FAILURES {
            return None;
        }
        let least = self.highest_score(limits) * (1.0 + 0.5 * self.saturation);
        let gains = |index: &usize| {
            let rate = self.predicted_rate(*index);
            self.goal != HoldGoal::Throughput || rate.is_none_or(|rate| rate >= least)
        };
        let near = near
            .filter(|index| !self.candidates[*index].is_tried())
            .filter(|index| is_at_most(self.predicted_latency(*index), limits.latency))
            .filter(gains);
        let excess = |index: usize| Some((index, self.predicted_power(index)? / limits.cap));
        let near: Vec<(usize, f64)> = near.filter_map(excess).collect();
        // Each failure shows that predictions are too low.
        let highest = 1.0 - FAILURE_MARGIN * failures as f64;
        let within = near.iter().rev().find(|(_, excess)| *excess <= highest);
        let lowest = || near.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let next = within
            .or_else(|| lowest().filter(|(_, excess)| failures == 0 && *excess <= EVEN_MARGIN));
        next.map(|(index, _)| *index)
    }

    /// The candidate above `top` within the limits whose mean powers are most even at a slightly lower speed, among those
    /// that are about as fast as the fastest. `None` if the load does not alternate or none is as fast as `least_rate`.
    /// It may have been tried.
    pub fn even_batch_above(
        &self,
        top: usize,
        limits: &OperatingLimits,
        least_rate: f64,
    ) -> Option<usize> {
        let is_even = |index: &usize| {
            self.swing * self.uneven_share(*index, 1.0) <= UNEVEN_POWER * limits.cap
        };
        let larger = (top + 1..self.fitting)
            .filter(|_| self.swing > 0.0)
            .filter(|index| is_even(index) && self.is_predicted_within(*index, limits))
            .filter_map(|index| Some((index, self.predicted_rate(index)?)));
        let larger: Vec<(usize, f64)> = larger.filter(|(_, rate)| *rate >= least_rate).collect();
        let fastest = larger.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let about_as_fast = larger
            .iter()
            .filter(|(_, rate)| *rate >= EQUAL_RATE * fastest);
        let candidates =
            about_as_fast.map(|(index, _)| (*index, self.uneven_share(*index, SLOWER)));
        let most_even = candidates.min_by(|a, b| a.1.total_cmp(&b.1));
        most_even.map(|(index, _)| index)
    }

    /// Returns the failed candidate if its retry is due; all other retries are then postponed until the result is
    /// known.
    fn retry(&mut self, failed: usize, now: f64) -> Option<usize> {
        if !self.candidates[failed].is_retry_due(now) {
            return None;
        }
        let others = self.candidates.iter_mut().enumerate();
        for (_, candidate) in others.filter(|(index, _)| *index != failed) {
            candidate.postpone_retry(now + self.delays.expiry);
        }
        Some(failed)
    }

    /// A candidate to try between `top` and a failed candidate, at most halfway.
    fn step_between(&self, top: usize, failed: usize, limits: &OperatingLimits) -> Option<usize> {
        let middle = top + (failed - top) / 2;
        let mut steps = (top + 1..=middle).rev();
        let next = steps.find(|index| self.is_predicted_within(*index, limits));
        next.or_else(|| {
            Some(top + 1).filter(|next| *next <= middle && self.is_nearly_within(*next, limits))
        })
    }

    /// A candidate to try above `top` if no larger candidate has failed.
    fn step_beyond(&self, top: usize, limits: &OperatingLimits) -> Option<usize> {
        let fits = |index: &usize| {
            let is_near = *index == top + 1 || self.values[*index] <= LARGE_STEP * self.values[top];
            self.is_predicted_within(*index, limits)
                && (is_near || is_at_most(self.safe_power(*index), limits.cap))
        };
        let last = (top + self.stride).min(self.fitting - 1);
        let next = (top + 1..=last).rev().find(fits);
        next.or_else(|| Some(top + 1).filter(|next| self.is_nearly_within(*next, limits)))
    }

    /// Whether neither the predicted power nor the predicted latency exceeds the limits.
    fn is_predicted_within(&self, index: usize, limits: &OperatingLimits) -> bool {
        is_at_most(self.predicted_power(index), limits.cap)
            && is_at_most(self.predicted_latency(index), limits.latency)
    }

    /// Whether the predicted power and latency exceed the limits by no more than [`PREDICTION_MARGIN`] and
    /// [`LATENCY_MARGIN`].
    fn is_nearly_within(&self, index: usize, limits: &OperatingLimits) -> bool {
        is_at_most(self.predicted_power(index), PREDICTION_MARGIN * limits.cap)
            && is_at_most(
                self.predicted_latency(index),
                LATENCY_MARGIN * limits.latency,
            )
    }

    /// Starts a pause of the climb. Once the pause is over, returns the next larger candidate even if its predictions
    /// exceed the limits.
    fn step_despite_prediction(&mut self, top: usize, now: f64) -> Option<usize> {
        let next = &self.candidates[top + 1];
        if next.is_barred() || next.is_measured() {
            return None;
        }
        match self.paused {
            Some(paused) if paused.top == top => (now >= paused.until).then(|| {
                self.paused = None;
                top + 1
            }),
            _ => {
                self.pause(top, now);
                None
            }
        }
    }

    /// Tries no candidate above `top` for a while.
    fn pause(&mut self, top: usize, now: f64) {
        self.paused = Some(PausedClimb {
            top,
            until: now + self.delays.expiry,
        });
    }

    /// By how much the last step up to the candidate `top` improved the objective, as a share per doubling of the batch
    /// size or clock.
    pub(super) fn gain_per_doubling(&self, top: usize, limits: &OperatingLimits) -> Option<f64> {
        // Between sizes that are close together the noise of the measurements is larger than the gain.
        let is_far = |index: &usize| self.values[top] >= FAR_ENOUGH * self.values[*index];
        let below = || self.good_candidates(*limits).filter(|index| *index < top);
        let below = below().filter(is_far).last().or_else(|| below().last())?;
        let gain = self.score(top) / self.score(below).max(1e-9) - 1.0;
        Some(gain / (self.values[top] / self.values[below]).log2())
    }

    /// Decides what to do next after a limit was exceeded: use the best candidate that is known to be good, or one at
    /// most halfway down.
    pub(super) fn step_down(
        &mut self,
        index: usize,
        limits: &OperatingLimits,
        now: f64,
    ) -> SearchDecision {
        self.stride = 1;
        if let Some(best) = self.best(limits) {
            return SearchDecision::Use(best);
        }
        let is_untried = |below: &usize| !self.candidates[*below].is_tried();
        let untried: Vec<usize> = (0..index.min(self.fitting))
            .rev()
            .filter(is_untried)
            .collect();
        let middle = index / 2;
        let mut below = untried.iter().copied();
        let next = below.find(|below| self.is_predicted_within(*below, limits));
        let next = next.map(|next| next.min(middle.max(1)));
        match next.or_else(|| untried.iter().copied().find(|below| *below <= middle)) {
            Some(next) => SearchDecision::Use(next),
            None => self.minimise_power(index, limits, now),
        }
    }

    /// Moves towards the candidate with the least power and stays there; used if no candidate is known to meet the
    /// limits.
    fn minimise_power(
        &mut self,
        index: usize,
        limits: &OperatingLimits,
        now: f64,
    ) -> SearchDecision {
        let powers = (0..self.fitting).filter_map(|tried| {
            let preference = if tried == index { STAY_PREFERENCE } else { 1.0 };
            Some((tried, self.candidates[tried].power()? * preference))
        });
        let Some((least, _)) = powers.min_by(|a, b| a.1.total_cmp(&b.1)) else {
            return SearchDecision::Use(index.min(self.fitting - 1));
        };
        let neighbours = [least.checked_sub(1), Some(least + 1)];
        let neighbours = neighbours.into_iter().flatten();
        let mut open = neighbours
            .filter(|next| *next < self.fitting)
            .filter(|next| self.candidates[*next].may_be_tried(now));
        let power = self.candidates[least].power();
        let is_slow = power.is_some_and(|power| power <= limits.cap);
        // If the latency is the problem, only smaller batches are tried.
        if let Some(next) = open.find(|next| !is_slow || *next < least) {
            return SearchDecision::Use(next);
        }
        match is_slow {
            true => SearchDecision::LatencyInfeasible(least),
            false => SearchDecision::CapInfeasible(least),
        }
    }
}

/// Whether a prediction does not exceed a limit; an unknown value does not.
fn is_at_most(predicted: Option<f64>, limit: f64) -> bool {
    predicted.is_none_or(|predicted| predicted <= limit)
}
