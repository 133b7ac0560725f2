//! What others do while it holds: another cap, a queue, a batch that does not fit, a knob that is refused.

use sweetspot_device::Knob;
use sweetspot_quantity::Watts;

use super::{Control, Holder};
use crate::hold::action::Notice;
use crate::hold::joint;
use crate::hold::robust::Verdict;

impl Holder {
    pub(super) fn cap(&mut self, cap: Watts) {
        if !(cap.is_finite() && cap > Watts::ZERO) || cap == self.terms.cap {
            return;
        }
        self.terms.cap = cap;
        (self.said.infeasible, self.said.below_idle) = (false, false);
        self.check_idle();
        self.window.absolve();
        let bounds = self.bounds();
        let now = self.now;
        match &mut self.control {
            Control::Robust(robust) => {
                if let Verdict::At(next) = robust.rebound(self.at.batch, &bounds, now) {
                    self.at.batch = next;
                }
            }
            Control::Joint(joint) => {
                if let joint::Verdict::At(next) = joint.rebound(self.at, &bounds, now) {
                    self.at = next;
                }
            }
            Control::Search { .. } => {}
        }
    }

    pub(super) fn queue(&mut self, length: u64, arrivals_per_s: Option<f64>) {
        let served = self.window.observed().map(|observed| observed.rate);
        let batch = self.setting().batch;
        let behind = match (arrivals_per_s, served) {
            (Some(arrivals), Some(served)) => arrivals > 0.95 * served,
            _ => length > 2 * batch,
        };
        let behind = behind && length > batch;
        match &mut self.control {
            Control::Robust(robust) => robust.set_behind(behind),
            Control::Joint(joint) => joint.set_behind(behind),
            Control::Search { .. } => {}
        }
    }

    pub(super) fn out_of_memory(&mut self, size: u64) {
        let sizes = &self.terms.batches;
        let rung = sizes.partition_point(|batch| *batch < size);
        if rung == 0 {
            self.at.batch = 0;
        }
        self.does_not_fit(size, rung);
        match &mut self.control {
            Control::Robust(robust) => {
                robust.bound(rung);
                self.at.batch = self.at.batch.min(rung.saturating_sub(1));
            }
            Control::Joint(joint) => {
                joint.bound(rung);
                self.at.batch = self.at.batch.min(rung.saturating_sub(1));
            }
            Control::Search {
                search,
                over_levels: false,
            } => self.at.batch = search.bound(rung.saturating_sub(1)),
            Control::Search { .. } => {}
        }
    }

    pub(super) fn refused(&mut self, knob: Knob) {
        if !self.device_refused {
            self.device_refused = true;
            if let Control::Joint(joint) = &mut self.control {
                joint.freeze(self.at.level);
            }
            self.say(Notice::Refused(knob));
        }
    }
}
