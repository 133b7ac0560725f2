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
    pub falls_behind: bool,
    /// The device's own limit, and the cap that was to be held.
    pub device_limit: Option<(Watts, Watts)>,
    /// The place of the smallest size that did not fit.
    pub too_large: Option<usize>,
}

impl Holder {
    pub(super) fn infeasible(&mut self, power: f64) {
        // Algorithm 1 as printed is at its smallest batch for an old reading, not for what it draws now.
        if power > self.terms.cap.get() && !self.said.infeasible {
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
        // A load that comes and goes throttles again and again: that is nothing new.
        let said = Some((enforced, cap));
        if throttled && enforced < cap && self.said.device_limit != said {
            self.said.device_limit = said;
            self.say(Notice::DeviceLimit { enforced, cap });
        }
    }

    /// Said only where the bound falls: a program may report the same size in a loop.
    pub(super) fn does_not_fit(&mut self, size: u64, rung: usize) {
        if self.said.too_large.is_none_or(|before| rung < before) {
            self.said.too_large = Some(rung);
            let smallest = self.terms.batches[0];
            self.say(match rung {
                0 => Notice::NothingFits { size: smallest },
                _ => Notice::OutOfMemory { size },
            });
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

#[cfg(test)]
mod tests {
    use crate::hold::{Event, Holder, Notice, Terms};
    use sweetspot_quantity::{Seconds, Watts};

    fn said(events: impl IntoIterator<Item = Event>) -> Vec<Notice> {
        let terms = Terms::robust(Watts::new(400.0), vec![2, 4, 8]);
        let mut holder = Holder::new(terms).unwrap();
        let steps = (1..).zip(events);
        let notices = steps.filter_map(|(number, event)| {
            let now = Seconds::new(0.01 * f64::from(number));
            holder.step(now, event).notice
        });
        notices.collect()
    }

    #[test]
    fn a_size_that_does_not_fit_is_said_only_where_the_bound_falls() {
        let loop_of = |size| std::iter::repeat_n(Event::OutOfMemory { size }, 50);
        let all = loop_of(8)
            .chain(loop_of(7))
            .chain(loop_of(4))
            .chain(loop_of(8));
        let notices = said(all.chain(loop_of(2)).chain(loop_of(1)));
        assert_eq!(
            notices,
            [
                Notice::OutOfMemory { size: 8 },
                Notice::OutOfMemory { size: 4 },
                Notice::NothingFits { size: 2 }
            ]
        );
    }

    #[test]
    fn a_device_that_throttles_now_and_then_is_said_to_once() {
        let limit = |watts: f64, throttled| Event::Limit {
            enforced: Watts::new(watts),
            throttled,
        };
        let bursts = |watts: f64| (0..40).map(move |number| limit(watts, number % 2 == 0));
        let notices = said(bursts(300.0).chain(bursts(250.0)));
        assert_eq!(notices.len(), 2, "{notices:?}");
    }
}
