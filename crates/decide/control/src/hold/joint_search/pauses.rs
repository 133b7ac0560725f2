//! Trials for loads with pauses, during which the device waits for the host. The device cuts off the peaks of such a load at
//! its own cap, although only the mean must stay below the user's cap: a higher cap of the device, or none, is faster.

use super::{GridPosition, JointSearch};
use crate::hold::candidate::OperatingLimits;
use crate::hold::config::HoldGoal;

/// A load may have pauses if its power is below this share of the device's cap.
const HEADROOM: f64 = 0.92;
/// A batch is slowed down if its throughput is below this share of what smaller batches suggest.
const SLOWED_DOWN: f64 = 0.985;
/// The device does not slow down a setting if a higher level is not faster by this factor.
const FASTER: f64 = 1.004;
/// A failed trial is not repeated before the batch has grown by this factor.
const NEXT_TEST: f64 = 4.0;
/// A larger batch is tried at lower levels if it is predicted to exceed the cap at the present level by at most this
/// factor.
const EXCESS_AT_HIGH_LEVEL: f64 = 1.2;
/// The maximum number of levels at which such a batch is tried.
const MAX_LEVELS: usize = 3;
/// The assumed share of the time in which the device is busy: its mean power falls by this share of what is cut off its
/// peaks.
const BUSY_SHARE: f64 = 0.45;
/// The share of the cap that such a batch is to draw.
const LEFT_SHARE: f64 = 0.985;
/// The least expected gain of such a trial.
const MIN_GAIN: f64 = 1.007;

impl JointSearch {
    /// The best setting at the highest level, if its batches seem to be slowed down by the device's cap although their mean
    /// power is far below it.
    pub(super) fn without_device_cap(
        &self,
        best: GridPosition,
        limits: &OperatingLimits,
    ) -> Option<GridPosition> {
        let is_kept = self.exceeds_cap && self.is_kept_by_device(best.level, limits);
        if !is_kept || self.goal != HoldGoal::Throughput {
            return None;
        }
        let row = &self.rows[best.level];
        let has_headroom =
            self.power_at(best)? < HEADROOM * self.levels.values()[best.level].min(limits.cap);
        let is_slowed =
            self.score(best) < SLOWED_DOWN * row.rate_expected_from_smaller(best.batch)?;
        let level = (0..self.rows.len())
            .rev()
            .find(|level| self.is_allowed(*level))?;
        let row = &self.rows[level];
        let was_tested = (0..=best.batch)
            .rev()
            .find(|batch| row.candidates()[*batch].is_tried())
            .is_some_and(|tested| row.value(best.batch) < NEXT_TEST * row.value(tested));
        let is_higher = level > best.level;
        (has_headroom && is_slowed && is_higher && !was_tested)
            .then_some(GridPosition { level, ..best })
    }

    /// Whether a level above that of a setting was tried for its batch size or a larger one and was not faster, or whether
    /// the setting itself is not faster than a lower level: the device does not slow it down. A higher level that is
    /// faster makes further trials from this one unnecessary too.
    pub(super) fn needs_no_higher_level(&self, at: GridPosition, limits: &OperatingLimits) -> bool {
        let is_good = |position: &GridPosition| self.candidate(*position).is_good(limits);
        let here = self.score(at);
        let batches = at.batch..self.rows[at.level].fitting();
        let mut pairs = batches.flat_map(|batch| {
            let low = GridPosition { batch, ..at };
            let levels = at.level + 1..self.rows.len();
            levels.map(move |level| (low, GridPosition { batch, level }))
        });
        let mut lower = (0..at.level).map(|level| GridPosition { level, ..at });
        pairs.any(|(low, high)| {
            is_good(&high)
                && (high.batch == at.batch
                    || is_good(&low) && self.score(high) < FASTER * self.score(low))
        }) || lower.any(|lower| is_good(&lower) && here < FASTER * self.score(lower))
    }

    /// A larger batch at a lower level of the device's cap, for a load with pauses: the largest batch that is faster and
    /// whose power is not far above the cap at the present level.
    pub(super) fn larger_batch_below_peak(
        &self,
        best: GridPosition,
        limits: &OperatingLimits,
    ) -> Option<GridPosition> {
        if !self.exceeds_cap || self.is_kept_by_device(best.level, limits) {
            return None;
        }
        let row = &self.rows[best.level];
        let least_rate = MIN_GAIN * self.score(best);
        let wanted = OperatingLimits {
            cap: EXCESS_AT_HIGH_LEVEL * limits.cap,
            ..*limits
        };
        let batch = row.even_batch_above(best.batch, &wanted, least_rate)?;
        let at = |level: usize| self.candidate(GridPosition { batch, level });
        let above_cap = (0..best.level).filter(|level| !self.is_kept_by_device(*level, limits));
        let is_tried = |level: &usize| at(*level).is_tried();
        if above_cap.clone().filter(is_tried).count() >= MAX_LEVELS {
            return None;
        }
        let is_failed = |level: &usize| is_tried(level) && !at(*level).is_good(limits);
        let level = match above_cap.clone().find(is_failed) {
            Some(failed) => failed.checked_sub(1)?,
            None => {
                let excess = row.predicted_power(batch)? - LEFT_SHARE * limits.cap;
                let wanted = row.predicted_peak(batch)? - excess.max(0.0) / BUSY_SHARE;
                let levels = self.levels.values();
                let mut lower = above_cap.clone().rev();
                lower.find(|level| levels[*level] <= wanted)?
            }
        };
        let is_above_cap = above_cap.clone().any(|above| above == level);
        let next = GridPosition { batch, level };
        let is_open = is_above_cap && self.is_allowed(level) && !at(level).is_tried();
        is_open.then_some(next)
    }
}
