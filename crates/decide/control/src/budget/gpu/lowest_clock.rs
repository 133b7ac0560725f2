//! GPUs that draw more than a low cap, because they cannot lower their clock any further.

use super::{CAP_TOLERANCE, GpuState, LIMITED_SHARE, LONGEST_FOLLOW_TIME};

/// The time after which a GPU that is still above a lower cap does not follow it, in seconds: sensors show the mean of up to
/// a second.
const SURE_TIME: f64 = 1.3;
/// The same for a GPU that did not follow a cap before.
pub(super) const FALL_TIME: f64 = 0.8;
/// The time after which a program that has just started must keep the cap, in seconds.
const START_TIME: f64 = 0.5;
/// The cap that a GPU at its lowest clock needs to leave it, relative to what it draws.
const RELEASE_SHARE: f64 = 1.03;
/// How far below a cap that a GPU has followed the next one is that is tried.
const TRIAL_STEP: f64 = 0.93;

impl GpuState {
    /// The lowest cap for a GPU that has once drawn more than its cap. Some GPUs draw the same at every lower cap. Others,
    /// whose kernels wait for their launch, follow caps below that power as long as their clock is high, but fall to the
    /// lowest clock at some cap, draw more there, and stay until the cap is raised to what they draw. So lower caps are
    /// tried once, step by step.
    pub(super) fn least_cap(&self) -> f64 {
        match (self.is_stuck, self.falls) {
            (true, _) => RELEASE_SHARE * self.least_power,
            (false, 0) => 0.0,
            (false, 1) => TRIAL_STEP * self.followed,
            (false, _) => self.followed,
        }
    }

    /// The power below which the GPU does not go, as far as is known; 0 if it always followed its cap.
    pub(super) fn known_least(&self) -> f64 {
        match self.falls {
            0 => 0.0,
            _ => self.followed,
        }
    }

    /// Whether the GPU draws more than its cap although it had time to follow it. A program that has just started had to
    /// follow no change: readings that lag show less than it draws.
    fn is_above_cap(&self, now: f64) -> bool {
        let is_changed = self.changed_at > self.busy_since;
        let since = now - self.changed_at.max(self.busy_since);
        let time = match (is_changed, self.falls) {
            (true, 0) => SURE_TIME,
            (true, _) => FALL_TIME,
            (false, _) => START_TIME,
        };
        self.is_controlled()
            && self.asked.is_none()
            && since > time
            && self.power > self.cap * CAP_TOLERANCE + 1.0
    }

    /// Learns that the GPU draws more than its cap, because it cannot lower its clock further. Returns `None` if that is
    /// nothing new, and otherwise whether it is the first time.
    pub fn note_least_power(&mut self, now: f64) -> Option<bool> {
        let is_known = self.is_stuck && self.power <= self.least_power + 2.0;
        if !self.is_above_cap(now) || is_known {
            return None;
        }
        let is_first = self.falls == 0;
        self.least_power = self.least_power.max(self.power);
        self.reserve = self.reserve.max(self.power);
        if !self.is_stuck {
            self.is_stuck = true;
            self.falls += 1;
            // A cap that the GPU has followed before was too near.
            if self.falls > 2 && self.cap >= 0.99 * self.followed {
                self.followed = (1.04 * self.followed).min(self.least_power);
            }
        }
        if self.falls == 1 {
            self.followed = self.least_power;
        }
        self.learned = None;
        Some(is_first)
    }

    /// Learns that the GPU follows its cap again.
    pub(super) fn note_followed(&mut self, now: f64) {
        let is_settled = now - self.changed_at > LONGEST_FOLLOW_TIME && self.asked.is_none();
        if self.falls == 0 || !is_settled || self.power > self.cap * CAP_TOLERANCE + 1.0 {
            return;
        }
        let is_limited = self.limited >= LIMITED_SHARE;
        if self.is_stuck && is_limited && self.cap < self.least_cap() - 1.0 {
            return;
        }
        if self.is_stuck {
            self.is_stuck = false;
            self.limited_at = 0.0;
            self.learned = None;
        }
        // A GPU without a limit would also follow a cap of the power that it draws.
        let cap = if is_limited { self.cap } else { self.peak };
        if self.power > 0.9 * cap && self.peak > 0.0 {
            self.followed = self.followed.min(cap);
        }
    }
}
