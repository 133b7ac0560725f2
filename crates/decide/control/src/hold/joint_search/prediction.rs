//! Predictions of power and latency for settings that were not tried.

use super::{DeviceLevels, GridPosition, JointSearch};
use crate::hold::batch_search::BatchSearch;
use crate::hold::candidate::OperatingLimits;

/// The assumed share of the power that does not depend on the clock, if the idle power is unknown.
const STATIC_POWER_SHARE: f64 = 0.35;

impl JointSearch {
    /// Whether a setting meets the limits. Without a measurement, its predicted power may be up to `margin` times the
    /// cap.
    pub(super) fn fits(&self, at: GridPosition, limits: &OperatingLimits, margin: f64) -> bool {
        let candidate = self.candidate(at);
        if candidate.is_tried() {
            return candidate.is_good(limits);
        }
        let is_at_most =
            |predicted: Option<f64>, limit| predicted.is_none_or(|value| value <= limit);
        is_at_most(self.predicted_power(at), limits.cap * margin)
            && is_at_most(self.predicted_latency(at), limits.latency)
    }

    /// Whether the device itself keeps the cap at this level.
    pub(super) fn is_kept_by_device(&self, level: usize, limits: &OperatingLimits) -> bool {
        match &self.levels {
            DeviceLevels::PowerCaps(caps) => caps[level] <= limits.cap,
            DeviceLevels::Clocks(_) => false,
        }
    }

    /// The predicted latency in seconds, from the nearest level with a known latency; it is assumed to grow as the
    /// clock falls.
    fn predicted_latency(&self, at: GridPosition) -> Option<f64> {
        let (level, latency) =
            self.value_at_nearest_level(at.level, |row| row.predicted_latency(at.batch))?;
        Some(match &self.levels {
            DeviceLevels::PowerCaps(_) => latency,
            DeviceLevels::Clocks(clocks) => latency * (clocks[level] / clocks[at.level]).max(1.0),
        })
    }

    /// Finds the level nearest to `level` for which `value` is known, and returns its index and the value.
    fn value_at_nearest_level(
        &self,
        level: usize,
        value: impl Fn(&BatchSearch) -> Option<f64>,
    ) -> Option<(usize, f64)> {
        let value_at = |level: usize| value(self.rows.get(level)?).map(|value| (level, value));
        (0..self.rows.len()).find_map(|distance| {
            let below = level.checked_sub(distance).and_then(value_at);
            below.or_else(|| value_at(level + distance))
        })
    }

    /// The predicted power of a setting in watts; `None` if too little was measured.
    fn predicted_power(&self, at: GridPosition) -> Option<f64> {
        match &self.levels {
            DeviceLevels::Clocks(clocks) => self.predicted_power_at_clock(at, clocks),
            DeviceLevels::PowerCaps(caps) => {
                let measured = |level: usize| {
                    let power = self.power_at(GridPosition { level, ..at })?;
                    Some((caps[level], power))
                };
                let above = (at.level..caps.len()).find_map(measured);
                let below = || (0..at.level).rev().find_map(measured);
                match above {
                    // A device that was at its cap exceeds a lower one by the same factor.
                    Some((cap, power)) => {
                        let excess = (power / cap).max(1.0);
                        Some(power.min(caps[at.level] * excess))
                    }
                    // The power grows by no more than the cap.
                    None => below().map(|(cap, power)| power * caps[at.level] / cap),
                }
            }
        }
    }

    /// Predicts power as linear in the square of the clock, from two measured levels of the same batch size. If the
    /// batch size was not tried, its power is extrapolated from smaller ones at a near level.
    fn predicted_power_at_clock(&self, at: GridPosition, clocks: &[f64]) -> Option<f64> {
        let measured = |level: usize| {
            let power = self.power_at(GridPosition { level, ..at })?;
            Some((clocks[level].powi(2), power))
        };
        let below = (0..at.level).rev().find_map(measured);
        let mut above = (at.level + 1..clocks.len()).filter_map(measured);
        let x = clocks[at.level].powi(2);
        let at_rest = |power: f64| (0.0, self.static_power(power));
        let pair = match (below, above.next()) {
            (Some(below), Some(above)) => Some((below, above)),
            (None, Some(first)) => Some((first, above.next().unwrap_or_else(|| at_rest(first.1)))),
            (Some(below), None) => Some((below, at_rest(below.1))),
            (None, None) => None,
        };
        match pair {
            Some(((x0, y0), (x1, y1))) if x0 != x1 => Some(y0 + (y1 - y0) * (x - x0) / (x1 - x0)),
            _ => {
                let (level, power) =
                    self.value_at_nearest_level(at.level, |row| row.predicted_power(at.batch))?;
                let static_power = self.static_power(power);
                Some(static_power + (power - static_power) * x / clocks[level].powi(2))
            }
        }
    }

    /// The part of a power that does not depend on the clock, in watts.
    fn static_power(&self, power: f64) -> f64 {
        let idle = self.idle_power.unwrap_or(STATIC_POWER_SHARE * power);
        idle.min(power)
    }
}
