//! GPUs whose power is unknown, and those whose cap cannot be set for a while.

use sweetspot_quantity::Watts;

use super::{GpuState, IDLE_AFTER, SETTLE_TIME};

impl GpuState {
    /// The power of the GPU is unknown; returns whether the GPU has become busy.
    pub fn unread(&mut self, now: f64, is_busy: bool) -> bool {
        self.is_read = false;
        self.note_activity(now, is_busy)
    }

    /// Takes note of whether a program uses the GPU; returns whether it has become busy.
    pub(super) fn note_activity(&mut self, now: f64, is_busy: bool) -> bool {
        if is_busy {
            self.busy_at = now;
        }
        let was_busy = self.is_busy;
        self.is_busy = now - self.busy_at < IDLE_AFTER;
        if was_busy && !self.is_busy {
            self.forget();
        }
        if self.is_busy && !was_busy {
            self.busy_since = now;
            self.peak = 0.0;
        }
        self.is_busy && !was_busy
    }

    /// The GPU's cap can be set from now on; at present it is this one, which is the highest that the GPU may have.
    pub fn set_settable(&mut self, now: f64, max_cap: Watts) {
        self.device.max_cap = max_cap;
        self.device.min_cap = self.device.min_cap.min(max_cap);
        self.device.is_settable = true;
        self.asked = None;
        self.cap = max_cap.get();
        self.ceiling = self.cap;
        self.lowered_at = None;
        self.changed_at = now;
        self.peak = 0.0;
        self.meter.restart(now + SETTLE_TIME);
    }

    /// What a GPU counts for whose cap cannot be set: what it draws, or may draw if that is unknown.
    pub fn uncapped_power(&self) -> f64 {
        match self.is_read {
            true => self.power,
            false => self.device.max_cap.get(),
        }
    }
}
