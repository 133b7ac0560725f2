//! The decisions of a controller after a measurement window, or when power exceeds the cap.

use sweetspot_quantity::Seconds;

use super::setting_search::Axis;
use super::{Holder, SettingEffect, SettingSearch};
use crate::hold::action::HoldNotice;
use crate::hold::batch_search::SearchDecision;
use crate::hold::cap_on::CapOn;
use crate::hold::joint_search::GridPosition;
use crate::hold::paper_search::PaperDecision;
use crate::hold::power_profile::PowerProfile;
use crate::hold::window::WindowMeasurement;

/// The shortest time that samples must cover to show an early excess (before the averaging time is over), in seconds.
const MIN_EARLY_TIME: f64 = 0.25;
/// The mean power must exceed this multiple of the cap to show an early excess (before the averaging time is over).
const EARLY_EXCESS: f64 = 1.02;
/// The samples must cover this many batches to show an early excess, because power varies within a batch.
const MIN_EARLY_BATCHES: f64 = 5.0;
/// The limits count as feasible again after this many consecutive measurement windows within the cap.
const FEASIBLE_WINDOWS: u32 = 3;

impl Holder {
    /// Whether samples show clearly, before the setting was observed for long enough, that power exceeds the cap.
    pub(super) fn exceeds_cap_early(&self) -> bool {
        if matches!(self.search, SettingSearch::Paper { .. }) || self.window.has_power() {
            return false;
        }
        if self.config.cap_on == CapOn::Reading {
            let highest = self.averager.highest_reading();
            return highest.is_some_and(|highest| highest > self.config.cap);
        }
        self.window.batches >= 2
            && matches!(self.effect, SettingEffect::Since(_))
            && self.averager.partial_mean().is_some_and(|(power, time)| {
                let min_time = MIN_EARLY_TIME.max(MIN_EARLY_BATCHES * self.window.longest_batch());
                time.get() >= min_time && power.get() > self.config.cap.get() * EARLY_EXCESS
            })
    }

    /// Decides on the next setting because the cap is exceeded.
    pub(super) fn decide_on_excess(&mut self) {
        let highest = self.window.highest_power();
        let power = highest.or_else(|| self.averager.partial_mean().map(|(power, _)| power.get()));
        let Some(power) = power else { return };
        if matches!(&self.search, SettingSearch::Running(search) if !search.may_answer_excess()) {
            return;
        }
        self.window_count += 1;
        let limits = self.limits();
        let (now, at) = (self.now, self.position);
        match &mut self.search {
            SettingSearch::Axis { search, axis } => {
                let axis = *axis;
                let decision = search.after_excess(axis.index_of(at), power, &limits, now);
                self.apply_decision(decision.map(|index| axis.position(at, index)), power);
            }
            SettingSearch::Joint(search) => {
                let decision = search.after_excess(at, power, &limits, now);
                self.apply_decision(decision, power);
            }
            SettingSearch::Running(search) => {
                let decision = search.after_excess(at.batch, power, &limits, now);
                let decision = decision.map(|index| Axis::Batch.position(at, index));
                self.apply_decision(decision, power);
            }
            SettingSearch::DeviceCap { steps_below } => {
                *steps_below += 1;
                let level = self.config.device_cap_level(*steps_below);
                if level == at.level {
                    self.notify_infeasible(power);
                }
                self.position.level = level;
            }
            // The paper's algorithms wait until they have profiled their batches.
            SettingSearch::Paper { .. } => {}
        }
        self.window.restart();
    }

    /// Decides on the next setting if the measurement window is complete.
    pub(super) fn decide_if_complete(&mut self) {
        if let SettingSearch::Paper { profile, .. } = &mut self.search {
            if let Some(power) = profile.highest_reading() {
                *profile = PowerProfile::default();
                self.decide_by_paper(power);
            }
            return;
        }
        if self.window.batches < self.config.window || !self.window.covers_batches() {
            return;
        }
        if !self.is_observed() {
            return;
        }
        let Some(result) = self.window.result(self.config.cap.get()) else {
            return;
        };
        self.decide_on_window(&result);
        // While a limit rises quickly nothing is measured.
        let is_ramping =
            matches!(&self.search, SettingSearch::Running(search) if search.is_ramping());
        self.window_count += u64::from(!is_ramping);
        self.window.restart();
    }

    /// Decides on the next setting after a complete measurement window.
    fn decide_on_window(&mut self, window: &WindowMeasurement) {
        let limits = self.limits();
        let (now, at) = (self.now, self.position);
        match &mut self.search {
            SettingSearch::Axis { search, axis } => {
                let axis = *axis;
                let decision = search.after_window(axis.index_of(at), window, &limits, now);
                self.apply_decision(decision.map(|index| axis.position(at, index)), window.power);
            }
            SettingSearch::Joint(search) => {
                let decision = search.after_window(at, window, &limits, now);
                self.apply_decision(decision, window.power);
            }
            SettingSearch::Running(search) => {
                let decision = search.after_window(at.batch, window, &limits, now);
                let decision = decision.map(|index| Axis::Batch.position(at, index));
                self.apply_decision(decision, window.power);
            }
            SettingSearch::DeviceCap { .. } | SettingSearch::Paper { .. } => {}
        }
        self.after_decision(at, window.rate);
    }

    /// Lets the paper's algorithm decide on the next setting, by the highest power reading of the batches that it has
    /// profiled.
    fn decide_by_paper(&mut self, power: f64) {
        let cap = self.config.cap;
        let at = self.position;
        let SettingSearch::Paper { search, axis, .. } = &mut self.search else {
            return;
        };
        self.window_count += 1;
        match search.decide(power, cap) {
            PaperDecision::Use(index) => self.position = axis.position(at, index),
            PaperDecision::Infeasible => self.notify_infeasible(power),
        }
        self.after_decision(at, self.window.rate());
        self.window.restart();
    }

    /// Counts the measurement windows at the present setting after a decision at the setting `at`, which served this many
    /// items per second.
    fn after_decision(&mut self, at: GridPosition, rate: f64) {
        self.windows_at_setting = match self.position == at {
            true => self.windows_at_setting.saturating_add(1),
            false => 0,
        };
        self.check_overload(rate);
    }

    /// Applies the decision of a search. `power` is the latest measured power, for notices if the power of the chosen
    /// setting is unknown.
    pub(super) fn apply_decision(&mut self, decision: SearchDecision<GridPosition>, power: f64) {
        match decision {
            SearchDecision::Use(next) => {
                self.position = next;
                self.windows_within_cap = match power <= self.config.cap.get() {
                    true => self.windows_within_cap.saturating_add(1),
                    false => 0,
                };
                let is_feasible = self.windows_within_cap >= FEASIBLE_WINDOWS;
                if is_feasible && self.active_notices.infeasible {
                    self.active_notices.infeasible = false;
                    self.notify(HoldNotice::FeasibleAgain);
                }
            }
            SearchDecision::CapInfeasible(lowest) => {
                (self.windows_within_cap, self.position) = (0, lowest);
                self.notify_infeasible(self.search.power_at(lowest).unwrap_or(power));
            }
            SearchDecision::LatencyInfeasible(lowest) => {
                (self.windows_within_cap, self.position) = (0, lowest);
                let bound = self.config.latency_p99;
                if let Some(bound) = bound.filter(|_| !self.active_notices.infeasible) {
                    self.active_notices.infeasible = true;
                    let p99 = Seconds::new(self.window.p99());
                    self.notify(HoldNotice::LatencyInfeasible { p99, bound });
                }
            }
        }
    }
}
