//! The search that `sweetspot hold --knob batch` uses by default
//! ([`HoldMode::Robust`](super::config::HoldMode::Robust)): along the batch sizes or along the core clocks at one
//! batch size, remembering every measurement.
//!
//! It climbs by steps that double while predictions stay within the limits, steps down at once when the cap is
//! exceeded, and halves the distance between a good candidate and one that failed. Failed candidates are tried again
//! rarely, and at once after a change of the load or of the cap. `docs/decisions/009-hold-retries-rejected-batch-sizes.md`
//! lists the faults of the paper's algorithm that it avoids.

mod prediction;
mod steps;

use super::candidate::{Candidate, OperatingLimits, RetryDelays, Violation};
use super::config::{HoldConfig, HoldGoal};
use super::learning::{WindowResult, learn_from_window, record_result};
use super::window::WindowMeasurement;

/// A power that grew by more than this factor grew because of the load.
const CLEAR_GROWTH: f64 = 1.08;

/// What a search decides to do next; `P` is the type of its positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchDecision<P = usize> {
    /// Use the setting at this position next.
    Use(P),
    /// Stay at this position: no setting meets the cap.
    CapInfeasible(P),
    /// Stay at this position: no setting that meets the cap meets the latency bound.
    LatencyInfeasible(P),
}

impl<P> SearchDecision<P> {
    /// Returns the same decision with its position converted.
    pub fn map<Q>(self, convert: impl FnOnce(P) -> Q) -> SearchDecision<Q> {
        match self {
            Self::Use(position) => SearchDecision::Use(convert(position)),
            Self::CapInfeasible(position) => SearchDecision::CapInfeasible(convert(position)),
            Self::LatencyInfeasible(position) => {
                SearchDecision::LatencyInfeasible(convert(position))
            }
        }
    }
}

/// A search along one axis: over batch sizes, or over core clocks at one batch size.
#[derive(Clone, Debug)]
pub struct BatchSearch {
    /// The values on the axis in ascending order: batch sizes, or clocks in megahertz.
    values: Vec<f64>,
    /// Each value on a scale on which power is about linear, for predictions.
    linear_scale: Vec<f64>,
    /// The time over which power is averaged in seconds, for a search over batch sizes; absent for core clocks.
    averaging_time: Option<f64>,
    /// By how much the power alternates between batches in watts: the difference between the busy and the waiting device.
    /// It is 0 if the mean powers do not show it.
    swing: f64,
    /// Each value on a scale on which power grows at most linearly, for predictions that must not be too low.
    safe_scale: Vec<f64>,
    candidates: Vec<Candidate>,
    /// The number of candidates, counted from the smallest, that fit into memory.
    fitting: usize,
    /// The largest number of positions by which the next step may go up.
    stride: usize,
    /// The smallest relative gain, per doubling of the value, for which a larger value is tried.
    saturation: f64,
    goal: HoldGoal,
    delays: RetryDelays,
    /// Whether the batches of the last measurement window were full.
    has_full_batches: bool,
    /// Whether requests still wait that arrived at an earlier, slower setting; their latency is not an effect of the
    /// present setting.
    has_backlog: bool,
    paused: Option<PausedClimb>,
}

/// A pause during which no candidate above `top` is tried, because predictions exceed the limits there. It lasts a
/// while, because predictions fluctuate.
#[derive(Clone, Copy, Debug)]
struct PausedClimb {
    /// The index of the largest good candidate.
    top: usize,
    /// The end of the pause, in seconds.
    until: f64,
}

impl BatchSearch {
    /// Creates a search over the batch sizes of the configuration.
    pub fn over_batches(config: &HoldConfig) -> Self {
        let sizes: Vec<f64> = config.batches.iter().map(|size| *size as f64).collect();
        let linear_scale = sizes.iter().map(|size| size.log2()).collect();
        Self {
            averaging_time: Some(config.cap_on.observation_time().get()),
            ..Self::new(config, linear_scale, sizes.clone(), sizes)
        }
    }

    /// Creates a search over core clocks, assuming that power grows with the square of the clock, or at most with
    /// its cube if the voltage rises too.
    pub fn over_clocks(config: &HoldConfig, clocks: Vec<f64>) -> Self {
        let to_the = |power: i32| clocks.iter().map(|clock| clock.powi(power)).collect();
        Self {
            stride: (clocks.len() / 16).max(1),
            ..Self::new(config, to_the(2), to_the(3), clocks.clone())
        }
    }

    fn new(
        config: &HoldConfig,
        linear_scale: Vec<f64>,
        safe_scale: Vec<f64>,
        values: Vec<f64>,
    ) -> Self {
        Self {
            candidates: vec![Candidate::default(); values.len()],
            fitting: values.len(),
            values,
            linear_scale,
            averaging_time: None,
            swing: 0.0,
            safe_scale,
            stride: 1,
            saturation: config.saturation.get(),
            goal: config.goal,
            delays: RetryDelays {
                probe: config.probe.get(),
                expiry: config.expiry.get(),
            },
            has_full_batches: true,
            has_backlog: false,
            paused: None,
        }
    }

    /// Excludes this candidate and all larger ones, because they do not fit into memory.
    pub fn exclude_from(&mut self, index: usize) {
        self.fitting = self.fitting.min(index.max(1));
    }

    /// Sets whether requests still wait that arrived at an earlier, slower setting.
    pub fn set_backlog(&mut self, has_backlog: bool) {
        self.has_backlog = has_backlog;
    }

    /// Decides what to do next after a complete measurement window at a candidate.
    pub fn after_window(
        &mut self,
        index: usize,
        window: &WindowMeasurement,
        limits: &OperatingLimits,
        now: f64,
    ) -> SearchDecision {
        let window = self.without_backlog(window);
        self.has_full_batches = window.is_full();
        let rows = &mut [&mut self.candidates];
        let (result, load_changed) =
            learn_from_window(rows, (0, index), &window, limits, now, &self.delays);
        self.update_swing();
        if load_changed {
            self.paused = None;
        }
        match result {
            WindowResult::Inconclusive => SearchDecision::Use(index),
            WindowResult::WithinLimits => self.choose(index, limits, now),
            WindowResult::OverLimits => self.step_down(index, limits, now),
        }
    }

    /// Decides what to do next after the cap was exceeded before a measurement window was complete.
    pub fn after_excess(
        &mut self,
        index: usize,
        power: f64,
        limits: &OperatingLimits,
        now: f64,
    ) -> SearchDecision {
        let growth = self.candidates[index].record_excess(power, limits);
        let violation = Some(Violation::of_power(power, limits));
        let rows = &mut [&mut self.candidates];
        record_result(rows, (0, index), violation, now, &self.delays);
        // The power of the other candidates may have grown by the same factor, and may grow further. The highest mean of a
        // load that alternates grows by chance.
        let has_grown = self.swing == 0.0 || growth > CLEAR_GROWTH;
        let limits = limits.with_power_growth(if has_grown { growth } else { 1.0 });
        match self.best_with_margin(&limits) {
            Some(next) => {
                self.stride = 1;
                SearchDecision::Use(next)
            }
            None => self.step_down(index, &limits, now),
        }
    }

    /// Decides what to do next after the cap or the latency bound changed.
    pub fn after_limit_change(
        &mut self,
        index: usize,
        limits: &OperatingLimits,
        now: f64,
    ) -> SearchDecision {
        self.apply_limits(limits, now);
        match self.candidates[index].meets(limits) {
            true => self.choose(index, limits, now),
            false => self.step_down(index, limits, now),
        }
    }

    /// Bars (excludes for a while) the candidates that exceed changed limits, and releases those that meet them.
    pub fn apply_limits(&mut self, limits: &OperatingLimits, now: f64) {
        (self.stride, self.paused) = (1, None);
        for candidate in &mut self.candidates {
            candidate.apply_limits(limits, now, self.delays.expiry);
        }
    }

    /// Replaces the latency of a measurement window by an estimate without a backlog: a new request would wait for at
    /// most one batch and be served with the next.
    pub fn without_backlog(&self, window: &WindowMeasurement) -> WindowMeasurement {
        match self.has_backlog {
            true => WindowMeasurement {
                p99: window.p99.min(2.0 * window.duration),
                ..*window
            },
            false => *window,
        }
    }

    /// The indices of the candidates that were measured and meet the limits, in ascending order.
    pub fn good_candidates(&self, limits: OperatingLimits) -> impl Iterator<Item = usize> + '_ {
        (0..self.fitting).filter(move |index| self.candidates[*index].is_good(&limits))
    }

    /// Sets whether the batches of the last measurement window were full.
    pub fn set_full_batches(&mut self, has_full_batches: bool) {
        self.has_full_batches = has_full_batches;
    }

    /// All candidates, in ascending order of their values.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The value of a candidate: its batch size, or its clock in megahertz.
    pub fn value(&self, index: usize) -> f64 {
        self.values[index]
    }

    /// Lets the next step above this candidate double its index, as after a climb from the smallest one.
    pub fn allow_doubling(&mut self, index: usize) {
        self.stride = self.stride.max(index + 1);
    }

    /// The number of candidates that fit into memory.
    pub fn fitting(&self) -> usize {
        self.fitting
    }

    /// The largest candidate whose value is at most `factor` times that of the given candidate, or else the next larger
    /// one.
    pub fn larger_candidate(&self, index: usize, factor: f64) -> Option<usize> {
        let limit = factor * self.values[index];
        let larger = (index + 1..self.fitting).take_while(|next| self.values[*next] <= limit);
        larger
            .last()
            .or_else(|| Some(index + 1).filter(|next| *next < self.fitting))
    }

    /// The candidate to try next above all good candidates; `None` if no trial is worthwhile.
    pub fn next_above(
        &mut self,
        index: usize,
        limits: &OperatingLimits,
        now: f64,
    ) -> Option<usize> {
        let top = self.good_candidates(*limits).max().unwrap_or(index);
        self.step_up(top, limits, now)
    }

    /// The candidate of at most twice the value, if it was not tried and is worth a trial: for settings at which the
    /// power needs no caution.
    pub fn doubled(&self, index: usize, limits: &OperatingLimits) -> Option<usize> {
        let next = self.larger_candidate(index, 2.0)?;
        let latency = self.predicted_latency(next);
        let is_quick = latency.is_none_or(|latency| latency <= limits.latency);
        let is_open = self.has_full_batches && !self.candidates[next].is_tried();
        (is_open && is_quick && !self.is_saturated(index, limits)).then_some(next)
    }

    /// Whether the last step up to the candidate `top` gained so little that no larger candidate is worth a trial.
    pub fn is_saturated(&self, top: usize, limits: &OperatingLimits) -> bool {
        self.gain_per_doubling(top, limits)
            .is_some_and(|gain| gain < self.saturation)
    }
}

impl AsMut<[Candidate]> for BatchSearch {
    fn as_mut(&mut self) -> &mut [Candidate] {
        &mut self.candidates
    }
}
