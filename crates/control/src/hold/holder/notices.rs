//! What a person is told: each once, until it no longer holds.

use sweetspot_quantity::{Seconds, Watts};

use super::Holder;
use crate::hold::action::Notice;

/// Notices that wait to be said.
pub(super) const WAITING: usize = 8;

/// What has been said and still holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    pub infeasible: bool,
    pub below_idle: bool,
    pub never_asked: bool,
    pub ignores: bool,
    pub silent: bool,
    pub device_limit: bool,
    pub falls_behind: bool,
}

impl Holder {
    pub(super) fn infeasible(&mut self, power: f64) {
        if !self.said.infeasible {
            self.said.infeasible = true;
            self.say(Notice::Infeasible {
                power: Watts::new(power),
                cap: self.terms.cap,
            });
        }
    }

    pub(super) fn check_idle(&mut self) {
        let cap = self.terms.cap;
        let idle = self.terms.idle.filter(|idle| *idle >= cap);
        if let Some(idle) = idle.filter(|_| !self.said.below_idle) {
            self.said.below_idle = true;
            self.say(Notice::CapBelowIdle { idle, cap });
        }
    }

    pub(super) fn limit(&mut self, enforced: Watts, throttled: bool) {
        let cap = self.terms.cap;
        if throttled && enforced < cap && !self.said.device_limit {
            self.said.device_limit = true;
            self.say(Notice::DeviceLimit { enforced, cap });
        } else if !throttled {
            self.said.device_limit = false;
        }
    }

    /// What becomes true by time alone.
    pub(super) fn watch(&mut self) {
        let begun = self.begun.unwrap_or(self.now);
        let waited = self.now - begun;
        if !self.asked && waited >= self.terms.patience.get() && !self.said.never_asked {
            self.said.never_asked = true;
            self.say(Notice::NeverAsked {
                waited: Seconds::new(waited),
            });
        }
        let silent = self.now - self.last_reading.unwrap_or(begun);
        if silent >= self.terms.sensor.silence.get() && !self.said.silent {
            self.said.silent = true;
            self.window.clear();
            self.say(Notice::SensorStopped {
                silent: Seconds::new(silent),
            });
        }
    }

    pub(super) fn say(&mut self, notice: Notice) {
        if let Some(free) = self.notices.iter_mut().find(|place| place.is_none()) {
            *free = Some(notice);
        }
    }

    pub(super) fn next_notice(&mut self) -> Option<Notice> {
        let next = self.notices[0].take();
        self.notices.rotate_left(1);
        next
    }
}
