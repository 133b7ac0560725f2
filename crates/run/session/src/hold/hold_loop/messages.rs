//! The messages for the user while a hold runs.

use sweetspot_control::hold::HoldNotice;
use sweetspot_quantity::{Seconds, Watts};

use super::{HoldLoop, watts};
use crate::hold::notice::notice_message;

/// If the power stays exactly the same for this long, the device is not busy.
const UNUSED_AFTER: Seconds = Seconds::new(5.0);

impl HoldLoop<'_> {
    /// Warns once if the program asks for batch sizes but reports no batch.
    pub(super) fn warn_if_no_batches(&mut self, now: Seconds) {
        let has_waited = self
            .first_request
            .is_some_and(|first| now - first >= self.patience);
        if self.served.is_none() && has_waited && !self.warned_no_batches {
            self.warned_no_batches = true;
            self.notify(format!(
                "the program asked for its batch size but has reported no batch in {:.0}: after each batch call sweetspot.batch(items=size, seconds=took) (docs/reference/hold.md)",
                self.patience
            ));
        }
    }

    /// Warns once if a device's power is constant while batches run: they probably run on another device.
    pub(super) fn warn_if_power_is_constant(
        &mut self,
        now: Seconds,
        gpu: usize,
        power: Watts,
        is_busy: bool,
    ) {
        let last = &mut self.readings_of[gpu].constant_power;
        if power != last.power || !is_busy {
            (last.power, last.since) = (power, now);
        } else if now - last.since >= UNUSED_AFTER && !last.is_reported {
            last.is_reported = true;
            let which = match self.group.devices().len() {
                1 => String::new(),
                _ => format!("{}: ", self.group.name(gpu)),
            };
            self.notify(format!(
                "{which}power stays at {} while batches run: check that the program uses this GPU",
                watts(power)
            ));
        }
    }

    /// Shows the control algorithm's notice to the user; a cap that cannot be met is reported only once.
    pub(super) fn report_notice(&mut self, notice: &HoldNotice) {
        let cap = match notice {
            HoldNotice::CapBelowIdle { cap, .. } | HoldNotice::CapInfeasible { cap, .. } => {
                Some(*cap)
            }
            _ => None,
        };
        // For each cap that cannot be met, the user is warned once, whatever the reasons are.
        if cap.is_some() && self.infeasible_cap == cap {
            return;
        }
        self.infeasible_cap = cap.or(self.infeasible_cap);
        if *notice == HoldNotice::FeasibleAgain {
            self.infeasible_cap = None;
        }
        let mut message = notice_message(notice);
        if matches!(notice, HoldNotice::SensorStopped { .. })
            && let Some(silent) = self.silent_gpus()
        {
            message = format!("{message} ({silent})");
        }
        self.notify(message);
    }

    /// Shows a message to the user and stores it with the result.
    pub(super) fn notify(&mut self, message: String) {
        self.observer.note(&message);
        self.history.notices.push((self.now, message));
    }
}
