//! Events other than batches and power readings: a new cap, the queue length, a batch that does not fit into memory,
//! a rejected setting.

use sweetspot_device::Knob;
use sweetspot_quantity::Watts;

use super::setting_search::Axis;
use super::{Holder, SettingSearch};
use crate::hold::action::HoldNotice;
use crate::hold::joint_search::JointSearch;

/// The setting counts as settled after this many measurement windows without a change.
const SETTLED_WINDOWS: u32 = 5;

impl Holder {
    /// Handles a change of the power cap.
    pub(super) fn on_cap(&mut self, cap: Watts) {
        if !(cap.is_finite() && cap > Watts::ZERO) || cap == self.config.cap {
            return;
        }
        self.config.set_cap(cap);
        self.active_notices.infeasible = false;
        self.active_notices.cap_below_idle = false;
        self.check_idle_power();
        self.window.forget_excesses();
        let limits = self.limits();
        let (now, at) = (self.now, self.position);
        match &mut self.search {
            SettingSearch::Axis { search, axis } => {
                let axis = *axis;
                let decision = search.after_limit_change(axis.index_of(at), &limits, now);
                self.apply_decision(decision.map(|index| axis.position(at, index)), 0.0);
            }
            SettingSearch::Joint(_) if self.config.device_caps.is_some() => self.renew_search(),
            SettingSearch::Joint(search) => {
                let decision = search.after_limit_change(at, &limits, now);
                self.apply_decision(decision, 0.0);
            }
            SettingSearch::DeviceCap { steps_below } => {
                *steps_below = 0;
                self.position.level = self.config.device_cap_level(0);
            }
            SettingSearch::Running(search) => {
                search.apply_limits();
                self.window.restart();
            }
            SettingSearch::Paper { search, .. } => search.restart(),
        }
    }

    /// Starts the search of a device's cap anew. At other levels of the cap everything is different, except what fits into
    /// memory.
    fn renew_search(&mut self) {
        if let SettingSearch::Joint(search) = &mut self.search {
            let mut renewed = JointSearch::new(&self.config);
            renewed.exclude_from(search.fitting());
            self.position.level = renewed.first_level(self.config.cap.get());
            if self.device_rejected {
                renewed.fix_level(self.position.level);
            }
            *search = renewed;
        }
    }

    /// Handles the end of the time in which watts move between GPUs. A GPU that waits draws less than its cap, as one whose
    /// load has pauses, so that only now it shows whether the cap may be exceeded.
    pub(super) fn on_balanced(&mut self, has_changed: bool) {
        if !std::mem::take(&mut self.config.is_balancing) {
            return;
        }
        if has_changed {
            self.renew_search();
        } else if let SettingSearch::Joint(search) = &mut self.search {
            search.allow_levels_above(self.config.cap.get());
        }
    }

    /// Updates whether there is a backlog of requests. It begins when more items wait than fit into two batches, and
    /// ends when they fit into one batch: they have then arrived at the present setting.
    pub(super) fn on_queue(&mut self, length: u64, arrivals_per_s: Option<f64>) {
        self.arrivals_per_s = arrivals_per_s;
        let batch = self.setting().batch;
        let has_backlog = match self.has_backlog {
            true => length > batch,
            false => length > 2 * batch,
        };
        if self.has_backlog && !has_backlog {
            self.window.restart();
        }
        self.has_backlog = has_backlog;
        match &mut self.search {
            SettingSearch::Axis { search, .. } => search.set_backlog(has_backlog),
            SettingSearch::Joint(search) => search.set_backlog(has_backlog),
            SettingSearch::Running(_)
            | SettingSearch::DeviceCap { .. }
            | SettingSearch::Paper { .. } => {}
        }
    }

    /// Notifies the user if the setting has settled and requests arrive faster than they are served.
    pub(super) fn check_overload(&mut self, served_per_s: f64) {
        let is_settled = self.windows_at_setting >= SETTLED_WINDOWS;
        let excess = self
            .arrivals_per_s
            .filter(|arrivals| *arrivals > served_per_s);
        match excess.filter(|_| self.has_backlog && is_settled) {
            Some(arrivals_per_s) if !self.active_notices.overloaded => {
                self.active_notices.overloaded = true;
                self.notify(HoldNotice::Overloaded {
                    arrivals_per_s,
                    served_per_s,
                });
            }
            None if !self.has_backlog => self.active_notices.overloaded = false,
            _ => {}
        }
    }

    /// Handles a batch that did not fit into memory.
    pub(super) fn on_out_of_memory(&mut self, size: u64) {
        let sizes = &self.config.batches;
        let too_large = sizes.partition_point(|batch| *batch < size);
        if too_large == 0 {
            self.position.batch = 0;
        }
        self.notify_out_of_memory(size, too_large);
        let largest = too_large.saturating_sub(1);
        match &mut self.search {
            SettingSearch::Axis {
                search,
                axis: Axis::Batch,
            } => {
                search.exclude_from(too_large);
                self.position.batch = self.position.batch.min(largest);
            }
            SettingSearch::Joint(search) => {
                search.exclude_from(too_large);
                self.position.batch = self.position.batch.min(largest);
            }
            SettingSearch::Running(search) => {
                search.exclude_from(too_large);
                self.position.batch = self.position.batch.min(largest);
            }
            SettingSearch::Paper {
                search,
                axis: Axis::Batch,
                ..
            } => self.position.batch = search.exclude_above(largest),
            SettingSearch::Axis { .. }
            | SettingSearch::Paper { .. }
            | SettingSearch::DeviceCap { .. } => {}
        }
    }

    /// Handles a setting that the device rejected.
    pub(super) fn on_rejection(&mut self, knob: Knob) {
        if !self.device_rejected {
            self.device_rejected = true;
            if let SettingSearch::Joint(search) = &mut self.search {
                search.fix_level(self.position.level);
            }
            self.notify(HoldNotice::KnobRejected(knob));
        }
    }
}
