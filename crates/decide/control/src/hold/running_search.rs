//! The search of `sweetspot hold --knob batch` for programs that batch continuously, such as servers of language models:
//! a new size is a limit, and the number of requests that run together follows it over seconds.
//!
//! Such a program shows the power of a size only when as many requests run as the limit allows, and not at once even then:
//! requests that started together end together, and their successors start together, with a burst of work each time. So the
//! limit rises by small steps, which spread the starts of requests; only powers that were measured once the running requests
//! have followed are those of a size; and a size is judged by the highest mean of several seconds. More requests that run
//! together are never slower all together, so that the largest limit below the cap is taken for both objectives.
//! `docs/decisions/037-hold-follows-running-batches.md` says why.

mod detector;

use super::batch_search::SearchDecision;
use super::candidate::OperatingLimits;
use super::config::HoldConfig;
use super::window::WindowMeasurement;
pub use detector::FollowDetector;

/// As many requests as the limit allows run if their number is at least this share of it.
pub(super) const FULL_SHARE: f64 = 0.9;
/// The number of running requests counts as having followed if it has not grown for this time, in seconds: there are then
/// too few requests.
const STAGNATION: f64 = 2.0;
/// How long a size is observed while the power is far below the cap, and while it is neither far nor near, in seconds.
const RAMP_TIME: f64 = 0.7;
const MIDDLE_TIME: f64 = 1.5;
/// How long a size is observed near the cap, in seconds; doubled, up to the longest, when a size turns out to have been
/// judged too early.
const OBSERVATION: f64 = 4.0;
const LONGEST_OBSERVATION: f64 = 32.0;
/// The largest step while the power is far below the cap.
const RAMP_STEP: f64 = 1.125;
/// The power is far below the cap if a step and this factor keep it there: the mean over a second lags behind the steps.
const FAR_MARGIN: f64 = 1.1;
/// The power is not near the cap if the next larger size and this factor keep it there.
const MIDDLE_MARGIN: f64 = 1.025;
/// Near the cap a larger size is tried if its predicted power is at most this share of the cap. The share falls, down to the
/// lowest, by a step with each size that exceeded the cap after it was judged good.
const NEAR_SHARE: f64 = 0.998;
const NEAR_STEP: f64 = 0.005;
const LOWEST_SHARE: f64 = 0.97;
/// Later means are expected to rise above the highest one of an observation by this share of its distance from their mean.
const LATER_PEAKS: f64 = 0.2;
/// The assumed growth of the power with each doubling of the size, as a share of it, until it was measured. On an H200 it is
/// 3 to 17 %.
const GROWTH_PER_DOUBLING: f64 = 0.15;
/// The growth is measured between sizes that differ by at least this factor, and taken from this range.
const GROWTH_DISTANCE: f64 = 1.2;
const GROWTH_RANGE: (f64, f64) = (0.04, 0.2);
/// A size that exceeded the cap while the limit rose quickly is tried again after this many observations: a burst of prompts
/// may have done it.
const RAMP_WAIT: f64 = 1.0;
/// The most times that the wait before a retry doubles.
const MAX_DOUBLINGS: u8 = 3;

/// What is known about a size.
#[derive(Clone, Copy, Debug, Default)]
struct SizeRecord {
    /// The highest mean power of the last observation, in watts.
    power: Option<f64>,
    /// The number of observations within the limits since the last failure.
    good_observations: u32,
    /// How often the size exceeded a limit, and when it may be tried again, in seconds.
    failures: u8,
    barred_until: Option<f64>,
    /// Whether the size exceeded the latency bound rather than the cap.
    was_slow: bool,
}

/// The search along the limits of the number of running requests.
#[derive(Clone, Debug)]
pub struct RunningSearch {
    sizes: Vec<f64>,
    records: Vec<SizeRecord>,
    /// The number of sizes, counted from the smallest, that fit into memory.
    fitting: usize,
    /// The wait before a size that failed is tried again, in seconds.
    expiry: f64,
    /// How long a size near the cap is observed, in seconds.
    observation: f64,
    /// The share of the cap up to which larger sizes are tried.
    near_share: f64,
    follow: Follow,
    /// Whether the last change was a step of the ramp, far from the cap.
    is_ramping: bool,
}

/// A larger size to use next, and how long the present one is observed before, in seconds.
#[derive(Clone, Copy, Debug)]
struct RampStep {
    next: usize,
    time: f64,
}

/// How the running requests follow the present limit.
#[derive(Clone, Copy, Debug, Default)]
struct Follow {
    /// When as many requests ran as the limit allows, or as there are.
    since: Option<f64>,
    /// The largest number of running requests, and when it was reached.
    most: u64,
    grown_at: f64,
    /// Whether more requests run than the limit allows, because it was lowered.
    is_draining: bool,
    /// Whether there are fewer requests than the limit allows.
    has_too_few: bool,
}

impl RunningSearch {
    /// Creates a search over the batch sizes of the configuration.
    pub fn new(config: &HoldConfig, fitting: usize, now: f64) -> Self {
        let mut search = Self {
            sizes: config.batches.iter().map(|size| *size as f64).collect(),
            records: vec![SizeRecord::default(); config.batches.len()],
            fitting,
            expiry: config.expiry.get(),
            observation: OBSERVATION,
            near_share: NEAR_SHARE,
            follow: Follow::default(),
            is_ramping: true,
        };
        search.start_size(now);
        search
    }

    /// Notes that the limit was changed.
    pub fn start_size(&mut self, now: f64) {
        self.follow = Follow {
            grown_at: now,
            ..Follow::default()
        };
    }

    /// Takes the number of requests of a batch; returns whether the running requests have followed with it.
    pub fn on_batch(&mut self, now: f64, items: u64, limit: u64) -> bool {
        let follow = &mut self.follow;
        follow.is_draining = items > limit;
        if items > follow.most {
            (follow.most, follow.grown_at) = (items, now);
        }
        let is_full = items as f64 >= FULL_SHARE * limit as f64 && !follow.is_draining;
        if is_full {
            follow.has_too_few = false;
        }
        if follow.since.is_some() {
            return false;
        }
        let is_stagnant = !follow.is_draining && now - follow.grown_at >= STAGNATION;
        follow.has_too_few = is_stagnant && !is_full;
        let has_followed = is_full || is_stagnant;
        follow.since = has_followed.then_some(now);
        has_followed
    }

    /// Whether an excess of the cap may be answered now: not while requests end that an earlier limit let in.
    pub fn may_answer_excess(&self) -> bool {
        !self.follow.is_draining
    }

    /// Whether the present size was observed for long enough, if its highest mean power was `power` so far.
    pub fn is_observed(
        &self,
        index: usize,
        power: f64,
        limits: &OperatingLimits,
        now: f64,
    ) -> bool {
        let Some(since) = self.follow.since else {
            return false;
        };
        let needed = match self.ramp_step(index, power, limits, now) {
            Some(step) => step.time,
            None => self.observation,
        };
        now - since >= needed
    }

    /// Decides what to do next after an observation.
    pub fn after_window(
        &mut self,
        index: usize,
        window: &WindowMeasurement,
        limits: &OperatingLimits,
        now: f64,
    ) -> SearchDecision {
        if window.p99 > limits.latency {
            return self.after_slow(index, window.power, now);
        }
        if self.follow.has_too_few {
            return SearchDecision::Use(index);
        }
        let observed_since = self.follow.since.unwrap_or(now);
        let step = self.ramp_step(index, window.power, limits, now);
        let step = step.filter(|_| now - observed_since < self.observation);
        self.is_ramping = step.is_some();
        // The next observation begins now, if the size stays.
        self.follow.since = Some(now);
        if let Some(step) = step {
            return SearchDecision::Use(step.next);
        }
        let record = &mut self.records[index];
        record.power = Some(window.power);
        record.good_observations = record.good_observations.saturating_add(1);
        let next = index + 1;
        let is_open = next < self.fitting && !self.is_barred(next, now);
        let is_within = is_open && {
            let predicted = self.records[next].power;
            let predicted = predicted.unwrap_or_else(|| self.predicted(index, next, window.power));
            // The highest mean of some seconds is not yet the highest of minutes.
            let later = LATER_PEAKS * (window.power - window.mean_power).max(0.0);
            predicted + later <= self.near_share * limits.cap
        };
        SearchDecision::Use(if is_within { next } else { index })
    }

    /// Decides what to do next after the cap was exceeded.
    pub fn after_excess(
        &mut self,
        index: usize,
        power: f64,
        limits: &OperatingLimits,
        now: f64,
    ) -> SearchDecision {
        let record = &mut self.records[index];
        let was_good = std::mem::take(&mut record.good_observations) > 0;
        let since = self.follow.since;
        let is_observed = since.is_some_and(|since| now - since >= self.observation);
        if was_good || is_observed {
            record.power = Some(power);
            self.observation = (2.0 * self.observation).min(LONGEST_OBSERVATION);
            self.near_share = (self.near_share - NEAR_STEP).max(LOWEST_SHARE);
        }
        let record = &self.records[index];
        let is_burst = std::mem::take(&mut self.is_ramping) && !was_good && record.failures == 0;
        let wait = match is_burst {
            true => RAMP_WAIT * self.observation,
            false => self.expiry * f64::from(1_u32 << record.failures.min(MAX_DOUBLINGS)),
        };
        self.bar(index, now, wait);
        let excess = (power / limits.cap - 1.0).max(0.0);
        let target = self.sizes[index] * (-excess / GROWTH_PER_DOUBLING).exp2();
        match index.checked_sub(1) {
            None => SearchDecision::CapInfeasible(index),
            Some(below) => {
                let fitting = self.sizes.partition_point(|size| *size <= target);
                SearchDecision::Use(fitting.saturating_sub(1).min(below))
            }
        }
    }

    /// Decides what to do next after an observation above the latency bound.
    fn after_slow(&mut self, index: usize, power: f64, now: f64) -> SearchDecision {
        let record = &mut self.records[index];
        (record.power, record.was_slow) = (Some(power), true);
        record.good_observations = 0;
        self.bar(index, now, self.expiry);
        match index.checked_sub(1) {
            Some(below) => SearchDecision::Use(below),
            None => SearchDecision::LatencyInfeasible(index),
        }
    }

    /// Forgets failures, because the limits changed: a size that was too much may fit now. What was measured stays true.
    pub fn apply_limits(&mut self) {
        for record in &mut self.records {
            (record.barred_until, record.failures, record.was_slow) = (None, 0, false);
            record.good_observations = 0;
        }
    }

    /// Excludes this size and all larger ones, because they do not fit into memory.
    pub fn exclude_from(&mut self, index: usize) {
        self.fitting = self.fitting.min(index.max(1));
    }

    /// Whether the last decision was a step of the ramp, far from the cap.
    pub fn is_ramping(&self) -> bool {
        self.is_ramping
    }

    /// The highest mean power of the last observation of a size, in watts.
    pub fn power(&self, index: usize) -> Option<f64> {
        self.records[index].power
    }

    /// Whether there are fewer requests than the present limit allows.
    pub fn has_too_few_requests(&self) -> bool {
        self.follow.has_too_few
    }

    /// Whether a larger size exceeded the cap, and whether one exceeded the latency bound.
    pub fn failures_above(&self, index: usize) -> (bool, bool) {
        let above = self.records.iter().skip(index + 1);
        let failed = above.filter(|record| record.failures > 0);
        failed.fold((false, false), |(power, slow), record| {
            (power || !record.was_slow, slow || record.was_slow)
        })
    }

    /// The next larger size while the power is not near the cap.
    fn ramp_step(
        &self,
        index: usize,
        power: f64,
        limits: &OperatingLimits,
        now: f64,
    ) -> Option<RampStep> {
        if self.follow.has_too_few {
            return None;
        }
        let margin = |next: usize| limits.cap / self.predicted(index, next, power);
        let most = RAMP_STEP * self.sizes[index];
        let open = index + 1..self.fitting;
        let open = open.take_while(|next| !self.is_barred(*next, now));
        let far = open
            .clone()
            .filter(|next| *next == index + 1 || self.sizes[*next] <= most)
            .take_while(|next| margin(*next) >= FAR_MARGIN);
        let far = far.last().map(|next| RampStep {
            next,
            time: RAMP_TIME,
        });
        let middle = || {
            let next = open.clone().next();
            let next = next.filter(|next| margin(*next) >= MIDDLE_MARGIN)?;
            Some(RampStep {
                next,
                time: MIDDLE_TIME,
            })
        };
        far.or_else(middle)
    }

    /// The power that a larger size would have, in watts, if this one has `power`.
    fn predicted(&self, index: usize, next: usize, power: f64) -> f64 {
        let doublings = (self.sizes[next] / self.sizes[index]).log2();
        power * (1.0 + self.growth(index, power) * doublings)
    }

    /// By how much the power grows with each doubling of the size, as a share of it.
    fn growth(&self, index: usize, power: f64) -> f64 {
        let far = (0..index).rev().filter_map(|below| {
            let distance = self.sizes[index] / self.sizes[below];
            let known = self.records[below].power?;
            (distance >= GROWTH_DISTANCE).then_some((distance, known))
        });
        let (lowest, highest) = GROWTH_RANGE;
        let measured = far.map(|(distance, known)| (power / known - 1.0) / distance.log2());
        let mut measured = measured;
        let nearest = measured.next();
        nearest.map_or(GROWTH_PER_DOUBLING, |growth| growth.clamp(lowest, highest))
    }

    fn is_barred(&self, index: usize, now: f64) -> bool {
        let until = self.records[index].barred_until;
        until.is_some_and(|until| now < until)
    }

    fn bar(&mut self, index: usize, now: f64, wait: f64) {
        let record = &mut self.records[index];
        record.failures = record.failures.saturating_add(1);
        record.barred_until = Some(now + wait);
    }
}
