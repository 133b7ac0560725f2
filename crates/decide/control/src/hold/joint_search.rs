//! The search that `sweetspot hold --knob joint` uses ([`HoldMode::Joint`](super::config::HoldMode::Joint)): over
//! batch size and core clock (or device power cap) together: the largest useful batch, at the highest device level
//! that the cap then allows.
//!
//! The search explores a grid of settings around the best one known: a larger batch at the same level, a higher
//! level, a larger batch at a lower level, and, if the objective is energy, a lower level. Each setting is tried
//! once until the load or the cap changes.

mod pauses;
mod prediction;
mod trials;

use super::batch_search::{BatchSearch, SearchDecision};
use super::candidate::{Candidate, OperatingLimits, RetryDelays, Violation};
use super::config::{DeviceKnob, HoldConfig, HoldGoal};
use super::learning::{WindowResult, learn_from_window, record_result};
use super::window::WindowMeasurement;
use trials::TrialBudget;

/// Another setting replaces the present one only if its score is better by more than this factor.
const MIN_IMPROVEMENT: f64 = 1.005;

/// The device's cap is above the user's only if the score is then better by more than this factor: a device that keeps the
/// cap allows larger batches.
const KEPT_PREFERENCE: f64 = 1.008;
/// After this many measurement windows at the best setting without a trial, no more settings are tried for a while:
/// predictions fluctuate, and each trial may exceed the limits.
const SETTLED_WINDOWS: u32 = 4;

/// A setting of the grid: the indices of its batch size and of its device level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridPosition {
    pub batch: usize,
    pub level: usize,
}

/// A search over a grid of batch sizes and device levels.
#[derive(Clone, Debug)]
pub struct JointSearch {
    /// One search over the batch sizes for each device level.
    rows: Vec<BatchSearch>,
    levels: DeviceLevels,
    goal: HoldGoal,
    idle_power: Option<f64>,
    delays: RetryDelays,
    /// The only device level that may be used; present once the device has rejected a change.
    fixed_level: Option<usize>,
    /// The index of the highest device level that may be used.
    highest_level: usize,
    /// Whether the device's cap may be above the user's, if the mean power allows it.
    exceeds_cap: bool,
    trials: TrialBudget,
    /// A setting that was good before and now exceeded the cap; the next lower level of the same batch size is tried
    /// next.
    lost: Option<GridPosition>,
}

/// The levels of the device knob, in ascending order.
#[derive(Clone, Debug)]
enum DeviceLevels {
    /// Core clocks in megahertz.
    Clocks(Vec<f64>),
    /// Power caps in watts.
    PowerCaps(Vec<f64>),
}

impl DeviceLevels {
    fn new(knob: &DeviceKnob) -> Self {
        match knob {
            DeviceKnob::None => Self::Clocks(Vec::new()),
            DeviceKnob::CoreClock(levels) => {
                Self::Clocks(levels.iter().map(|level| level.get()).collect())
            }
            DeviceKnob::PowerCap(levels) => {
                Self::PowerCaps(levels.iter().map(|level| level.get()).collect())
            }
        }
    }

    /// The clocks in megahertz or the caps in watts.
    fn values(&self) -> &[f64] {
        match self {
            Self::Clocks(values) | Self::PowerCaps(values) => values,
        }
    }

    /// Whether the levels are power caps rather than clocks.
    fn are_power_caps(&self) -> bool {
        matches!(self, Self::PowerCaps(_))
    }
}

impl JointSearch {
    pub fn new(config: &HoldConfig) -> Self {
        let levels = DeviceLevels::new(&config.knob);
        let rows = levels.values().iter();
        Self {
            rows: rows.map(|_| BatchSearch::over_batches(config)).collect(),
            levels,
            goal: config.goal,
            idle_power: config.idle_power.map(|idle| idle.get()),
            delays: RetryDelays {
                probe: config.probe.get(),
                // A grid has more failed settings than one axis, so they wait longer for a retry.
                expiry: 2.0 * config.expiry.get(),
            },
            fixed_level: None,
            highest_level: usize::MAX,
            exceeds_cap: config.device_caps.is_some() && !config.is_balancing,
            trials: TrialBudget::new(config.device_caps.is_some()),
            lost: None,
        }
    }

    /// The index of the device level to start with: the highest that cannot exceed the cap.
    pub fn first_level(&mut self, cap: f64) -> usize {
        self.update_highest_level(cap);
        self.highest_level_below(cap)
    }

    /// Updates the highest device level that a power cap allows.
    fn update_highest_level(&mut self, cap: f64) {
        self.highest_level = match self.exceeds_cap {
            true => self.levels.values().len().saturating_sub(1),
            false => self.highest_level_below(cap),
        };
    }

    /// The index of the highest device level that is not a power cap above the user's.
    fn highest_level_below(&self, cap: f64) -> usize {
        let allowed = match &self.levels {
            DeviceLevels::PowerCaps(caps) => caps.partition_point(|level| *level <= cap),
            DeviceLevels::Clocks(clocks) => clocks.len(),
        };
        allowed.saturating_sub(1)
    }

    /// Allows the device's cap to be above the user's, if the mean power allows it.
    pub fn allow_levels_above(&mut self, cap: f64) {
        self.exceeds_cap = true;
        self.update_highest_level(cap);
        self.trials.reset();
    }

    /// Excludes this batch size and all larger ones, because they do not fit into memory.
    pub fn exclude_from(&mut self, batch: usize) {
        for row in &mut self.rows {
            row.exclude_from(batch);
        }
    }

    /// The number of batch sizes, counted from the smallest, that fit into memory.
    pub fn fitting(&self) -> usize {
        self.rows.first().map_or(usize::MAX, BatchSearch::fitting)
    }

    /// Restricts the search to one level of the device's knob (core clock or power cap), given by its index.
    pub fn fix_level(&mut self, level: usize) {
        self.fixed_level = Some(level);
    }

    /// Sets whether requests still wait that arrived at an earlier, slower setting.
    pub fn set_backlog(&mut self, has_backlog: bool) {
        for row in &mut self.rows {
            row.set_backlog(has_backlog);
        }
    }

    /// Decides what to do next after a complete measurement window at a setting.
    pub fn after_window(
        &mut self,
        at: GridPosition,
        window: &WindowMeasurement,
        limits: &OperatingLimits,
        now: f64,
    ) -> SearchDecision<GridPosition> {
        let window = self.rows[at.level].without_backlog(window);
        if !window.meets(limits) {
            self.note_loss(at, window.power, limits);
        }
        self.rows[at.level].set_full_batches(window.is_full());
        let (result, load_changed) = learn_from_window(
            &mut self.rows,
            (at.level, at.batch),
            &window,
            limits,
            now,
            &self.delays,
        );
        self.rows[at.level].update_swing();
        if load_changed {
            self.trials.reset();
        }
        match result {
            WindowResult::Inconclusive => SearchDecision::Use(at),
            WindowResult::WithinLimits | WindowResult::OverLimits => self.choose(at, limits, now),
        }
    }

    /// Remembers that a setting which had met the limits has now exceeded one, and allows further trials. If it exceeded the
    /// cap, the next lower clock or cap of the device is tried next, unless the device's cap is above the user's: the power
    /// of such a setting depends more on its batch size.
    fn note_loss(&mut self, at: GridPosition, power: f64, limits: &OperatingLimits) {
        let candidate = self.candidate(at);
        if candidate.is_measured() && !candidate.is_barred() {
            let is_above_cap = self.exceeds_cap && !self.is_kept_by_device(at.level, limits);
            self.lost = (power > limits.cap && !is_above_cap).then_some(at);
            self.trials.extend_after_loss();
        }
    }

    /// Decides what to do next after the cap was exceeded before a measurement window was complete.
    pub fn after_excess(
        &mut self,
        at: GridPosition,
        power: f64,
        limits: &OperatingLimits,
        now: f64,
    ) -> SearchDecision<GridPosition> {
        self.note_loss(at, power, limits);
        let growth = self.rows[at.level].as_mut()[at.batch].record_excess(power, limits);
        let violation = Some(Violation::of_power(power, limits));
        let position = (at.level, at.batch);
        record_result(&mut self.rows, position, violation, now, &self.delays);
        // The power of the other settings may have grown by the same factor.
        self.choose(at, &limits.with_power_growth(growth), now)
    }

    /// Decides what to do next after the cap or the latency bound changed.
    pub fn after_limit_change(
        &mut self,
        at: GridPosition,
        limits: &OperatingLimits,
        now: f64,
    ) -> SearchDecision<GridPosition> {
        for row in &mut self.rows {
            row.apply_limits(limits, now);
        }
        self.trials.reset();
        self.update_highest_level(limits.cap);
        let at = GridPosition {
            level: at.level.min(self.highest_level),
            ..at
        };
        self.choose(at, limits, now)
    }

    /// What is known about the batch sizes at a device level.
    pub fn candidates_at(&self, level: usize) -> &[Candidate] {
        self.rows[level].candidates()
    }

    /// The measured power of a setting in watts; `None` if it was not tried.
    pub fn power_at(&self, at: GridPosition) -> Option<f64> {
        self.candidate(at).power()
    }

    /// What was measured at a setting.
    fn candidate(&self, at: GridPosition) -> &Candidate {
        &self.rows[at.level].candidates()[at.batch]
    }

    /// The value of the objective at a setting; higher is better.
    fn score(&self, at: GridPosition) -> f64 {
        self.candidate(at).score(self.goal)
    }

    /// Whether a device level may be used.
    fn is_allowed(&self, level: usize) -> bool {
        match self.fixed_level {
            Some(only) => level == only,
            None => level <= self.highest_level,
        }
    }

    /// The settings that were measured and meet the limits.
    fn good_positions(&self, limits: &OperatingLimits) -> impl Iterator<Item = GridPosition> + '_ {
        let limits = *limits;
        let rows = self.rows.iter().enumerate();
        let rows = rows.filter(|(level, _)| self.is_allowed(*level));
        rows.flat_map(move |(level, row)| {
            row.good_candidates(limits)
                .map(move |batch| GridPosition { batch, level })
        })
    }

    /// Decides on the next trial, or stays at the best setting that meets the limits.
    fn choose(
        &mut self,
        at: GridPosition,
        limits: &OperatingLimits,
        now: f64,
    ) -> SearchDecision<GridPosition> {
        let scored = self.good_positions(limits).map(|position| {
            // If several settings are equally good, the search stays at the present one.
            let preference = if position == at { MIN_IMPROVEMENT } else { 1.0 };
            let is_kept = !self.exceeds_cap || self.is_kept_by_device(position.level, limits);
            let preference = preference * if is_kept { KEPT_PREFERENCE } else { 1.0 };
            (position, preference * self.score(position))
        });
        let Some((best, _)) = scored.max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return self.step_down(at, limits, now);
        };
        match self.next_trial(best, limits, now) {
            Some(next) => {
                self.trials.spend(now + self.delays.expiry);
                SearchDecision::Use(next)
            }
            None => {
                if best == at && self.candidate(best).good_windows() >= SETTLED_WINDOWS {
                    self.trials.end(now + self.delays.expiry);
                }
                SearchDecision::Use(best)
            }
        }
    }

    /// Decides to use a lower level, or a smaller batch if there is no lower level; called if no setting is known to
    /// meet the limits.
    fn step_down(
        &mut self,
        at: GridPosition,
        limits: &OperatingLimits,
        now: f64,
    ) -> SearchDecision<GridPosition> {
        let at = GridPosition {
            batch: at.batch.min(self.rows[at.level].fitting() - 1),
            ..at
        };
        let here = self.candidate(at);
        let meets_cap = here.power().is_some_and(|power| power <= limits.cap);
        let is_too_slow = meets_cap && here.p99().is_some_and(|p99| p99 > limits.latency);
        let smaller_batch = |row: &BatchSearch| {
            let half = (row.fitting() - 1).min(at.batch / 2);
            let is_untried = |batch: &usize| !row.candidates()[*batch].is_tried();
            (0..=half).rev().find(is_untried)
        };
        if is_too_slow {
            return match smaller_batch(&self.rows[at.level]) {
                Some(batch) => SearchDecision::Use(GridPosition { batch, ..at }),
                None => SearchDecision::LatencyInfeasible(GridPosition { batch: 0, ..at }),
            };
        }
        let below = (0..at.level).rev().filter(|level| self.is_allowed(*level));
        let below = below.map(|level| GridPosition { level, ..at });
        let below: Vec<GridPosition> = below
            .filter(|position| self.candidate(*position).may_be_tried(now))
            .collect();
        let fitting = below.iter().find(|next| self.fits(**next, limits, 1.0));
        if let Some(next) = fitting.or(below.last()) {
            return SearchDecision::Use(*next);
        }
        let lowest = self.fixed_level.unwrap_or(0);
        if let Some(batch) = smaller_batch(&self.rows[lowest]) {
            return SearchDecision::Use(GridPosition {
                batch,
                level: lowest,
            });
        }
        let fitting = self.rows[lowest].fitting();
        let powers = self.rows[lowest].candidates()[..fitting].iter().enumerate();
        let powers = powers.filter_map(|(batch, tried)| Some((batch, tried.power()?)));
        let least = powers.min_by(|a, b| a.1.total_cmp(&b.1));
        SearchDecision::CapInfeasible(GridPosition {
            batch: least.map_or(0, |(batch, _)| batch),
            level: lowest,
        })
    }
}
