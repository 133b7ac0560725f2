//! The notices of a controller. Each is given once, and again only after its condition has ended.

use sweetspot_quantity::{Seconds, Watts};

use super::Holder;
use crate::hold::action::HoldNotice;

/// The maximum number of notices that wait to be returned; each step returns one.
pub(super) const MAX_PENDING_NOTICES: usize = 8;

/// For each condition, whether the user was notified of it and it has not ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ActiveNotices {
    pub infeasible: bool,
    pub cap_below_idle: bool,
    pub no_batch_size_requests: bool,
    pub batch_size_ignored: bool,
    pub sensor_stopped: bool,
    pub overloaded: bool,
    /// The limit that the device enforces, and the user's cap at the time of the notice; absent before the notice.
    pub device_limit: Option<(Watts, Watts)>,
    /// The index of the smallest batch size that did not fit into memory; absent if all did.
    pub too_large: Option<usize>,
}

impl Holder {
    /// Notifies the user that no setting meets the cap; `power` is the lowest power.
    pub(super) fn notify_infeasible(&mut self, power: f64) {
        // Algorithm 1 as printed may use the smallest batch because of an old reading.
        if power > self.config.cap.get() && !self.active_notices.infeasible {
            self.active_notices.infeasible = true;
            self.notify(HoldNotice::CapInfeasible {
                power: Watts::new(power),
                cap: self.config.cap,
            });
        }
    }

    /// Notifies the user if the cap is below the idle power of the device.
    pub(super) fn check_idle_power(&mut self) {
        let cap = self.config.cap;
        let idle = self.config.idle_power.filter(|idle| *idle >= cap);
        if let Some(idle) = idle.filter(|_| !self.active_notices.cap_below_idle) {
            self.active_notices.cap_below_idle = true;
            self.notify(HoldNotice::CapBelowIdle { idle, cap });
        }
    }

    /// Handles the report of the power limit that the device enforces.
    pub(super) fn on_device_limit(&mut self, enforced: Watts, throttled: bool) {
        let cap = self.config.cap;
        // A load with pauses is throttled again and again; this is reported once.
        let limit = Some((enforced, cap));
        if throttled && enforced < cap && self.active_notices.device_limit != limit {
            self.active_notices.device_limit = limit;
            self.notify(HoldNotice::DeviceLimit { enforced, cap });
        }
    }

    /// Notifies the user of a batch that does not fit into memory, only if it is smaller than those reported before:
    /// a program may report the same size in a loop.
    pub(super) fn notify_out_of_memory(&mut self, size: u64, index: usize) {
        let too_large = &mut self.active_notices.too_large;
        if too_large.is_none_or(|before| index < before) {
            *too_large = Some(index);
            let smallest = self.config.batches[0];
            self.notify(match index {
                0 => HoldNotice::SmallestBatchTooLarge { size: smallest },
                _ => HoldNotice::OutOfMemory { size },
            });
        }
    }

    /// Notifies the user if the program does not ask for a batch size or the sensor gives no readings.
    pub(super) fn check_timeouts(&mut self) {
        let started_at = self.started_at.unwrap_or(self.now);
        let waited = self.now - started_at;
        let is_overdue = !self.has_asked && waited >= self.config.patience.get();
        if is_overdue && !self.active_notices.no_batch_size_requests {
            self.active_notices.no_batch_size_requests = true;
            self.notify(HoldNotice::NoBatchSizeRequests {
                waited: Seconds::new(waited),
            });
        }
        let silent = self.now - self.last_reading.unwrap_or(started_at);
        if silent >= self.config.sensor.timeout.get() && !self.active_notices.sensor_stopped {
            self.active_notices.sensor_stopped = true;
            self.window.restart();
            self.notify(HoldNotice::SensorStopped {
                silent: Seconds::new(silent),
            });
        }
    }

    /// Queues a notice for the next steps.
    pub(super) fn notify(&mut self, notice: HoldNotice) {
        if let Some(free) = self.pending_notices.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(notice);
        }
    }

    /// Removes and returns the oldest queued notice.
    pub(super) fn next_notice(&mut self) -> Option<HoldNotice> {
        let next = self.pending_notices[0].take();
        self.pending_notices.rotate_left(1);
        next
    }
}

#[cfg(test)]
mod tests {
    use crate::hold::{HoldConfig, HoldEvent, HoldNotice, Holder};
    use sweetspot_quantity::{Seconds, Watts};

    fn notices_of(events: impl IntoIterator<Item = HoldEvent>) -> Vec<HoldNotice> {
        let config = HoldConfig::robust(Watts::new(400.0), vec![2, 4, 8]);
        let mut holder = Holder::new(config).unwrap();
        let steps = (1..).zip(events);
        let notices = steps.filter_map(|(number, event)| {
            let now = Seconds::new(0.01 * f64::from(number));
            holder.step(now, event).notice
        });
        notices.collect()
    }

    #[test]
    fn a_size_that_does_not_fit_is_reported_only_if_it_is_smaller_than_before() {
        let loop_of = |size| std::iter::repeat_n(HoldEvent::OutOfMemory { size }, 50);
        let all = loop_of(8)
            .chain(loop_of(7))
            .chain(loop_of(4))
            .chain(loop_of(8));
        let notices = notices_of(all.chain(loop_of(2)).chain(loop_of(1)));
        assert_eq!(
            notices,
            [
                HoldNotice::OutOfMemory { size: 8 },
                HoldNotice::OutOfMemory { size: 4 },
                HoldNotice::SmallestBatchTooLarge { size: 2 }
            ]
        );
    }

    #[test]
    fn a_device_that_throttles_repeatedly_is_reported_once() {
        let limit = |watts: f64, throttled| HoldEvent::DeviceLimit {
            enforced: Watts::new(watts),
            throttled,
        };
        let bursts = |watts: f64| (0..40).map(move |number| limit(watts, number % 2 == 0));
        let notices = notices_of(bursts(300.0).chain(bursts(250.0)));
        assert_eq!(notices.len(), 2, "{notices:?}");
    }
}
