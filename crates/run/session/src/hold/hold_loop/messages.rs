//! What a person is told while a hold goes on.

use sweetspot_control::hold::HoldNotice;
use sweetspot_quantity::{Seconds, Watts};

use super::{HoldLoop, watts};
use crate::hold::notice;

/// So long no device that works draws exactly the same.
const UNUSED_AFTER: Seconds = Seconds::new(5.0);

impl HoldLoop<'_> {
    /// A program that asks and reports no batch leaves nothing to go by.
    pub(super) fn check_reports(&mut self, now: Seconds) {
        let is_mute =
            self.served.is_none() && self.asked.is_some_and(|asked| now - asked >= self.patience);
        if is_mute && !self.warned_no_batches {
            self.warned_no_batches = true;
            self.say(format!(
                "the program asks for its batch size and has reported no batch in {:.0}: after each batch call sweetspot.batch(items=size, seconds=took) (docs/hold.md)",
                self.patience
            ));
        }
    }

    /// A program that works elsewhere leaves the power of this device as it is.
    pub(super) fn check_use(&mut self, now: Seconds, power: Watts, works: bool) {
        let (last, since, is_said) = self.same;
        if power != last || !works {
            self.same = (power, now, is_said);
        } else if now - since >= UNUSED_AFTER && !is_said {
            self.same.2 = true;
            self.say(format!(
                "batches are done and power stays at {}: does the program use this GPU (--device)?",
                watts(power)
            ));
        }
    }

    pub(super) fn notice(&mut self, notice: &HoldNotice) {
        let cap = match notice {
            HoldNotice::CapBelowIdle { cap, .. } | HoldNotice::CapInfeasible { cap, .. } => {
                Some(*cap)
            }
            _ => None,
        };
        // Whatever else is wrong with a cap that nothing can keep, it was said.
        if cap.is_some() && self.infeasible_cap == cap {
            return;
        }
        self.infeasible_cap = cap.or(self.infeasible_cap);
        if *notice == HoldNotice::FeasibleAgain {
            self.infeasible_cap = None;
        }
        self.say(notice::words(notice));
    }

    pub(super) fn say(&mut self, note: String) {
        self.observer.note(&note);
        self.record.notes.push((self.now, note));
    }
}
