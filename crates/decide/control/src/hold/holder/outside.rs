//! What others do while it holds: another cap, a queue, a batch that does not fit, a knob that is refused.

use sweetspot_device::Knob;
use sweetspot_quantity::Watts;

use super::{Control, Holder};
use crate::hold::action::Notice;

/// Windows at one setting after which it has come to rest.
const LONG: u32 = 5;

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
            Control::Robust {
                ladder,
                over_levels,
            } => {
                let (at, over_levels) = (self.at, *over_levels);
                let verdict = ladder.rebound(at.rung(over_levels), &bounds, now);
                self.follow(verdict.map(|rung| at.with_rung(rung, over_levels)), 0.0);
            }
            Control::Joint(joint) => {
                let verdict = joint.rebound(self.at, &bounds, now);
                self.follow(verdict, 0.0);
            }
            Control::OwnCap { lower } => {
                *lower = 0;
                self.at.level = self.terms.own_cap(0);
            }
            Control::Search { search, .. } => search.begin_again(),
        }
    }

    /// Behind from the moment that more waits than two batches take, until no more waits than one takes: what
    /// waits then came while the present setting was in force.
    pub(super) fn queue(&mut self, length: u64, arrivals_per_s: Option<f64>) {
        self.arrivals = arrivals_per_s;
        let batch = self.setting().batch;
        let behind = match self.behind {
            true => length > batch,
            false => length > 2 * batch,
        };
        if self.behind && !behind {
            self.window.clear();
        }
        self.behind = behind;
        match &mut self.control {
            Control::Robust { ladder, .. } => ladder.set_behind(behind),
            Control::Joint(joint) => joint.set_behind(behind),
            Control::OwnCap { .. } | Control::Search { .. } => {}
        }
    }

    /// More comes than the setting serves that it has come to rest at.
    pub(super) fn check_arrivals(&mut self, served: f64) {
        let too_many = self.arrivals.filter(|arrivals| *arrivals > served);
        match too_many.filter(|_| self.behind && self.held >= LONG) {
            Some(arrivals_per_s) if !self.said.falls_behind => {
                self.said.falls_behind = true;
                self.say(Notice::FallsBehind {
                    arrivals_per_s,
                    served_per_s: served,
                });
            }
            None if !self.behind => self.said.falls_behind = false,
            _ => {}
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
            Control::Robust {
                ladder,
                over_levels: false,
            } => {
                ladder.bound(rung);
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
            _ => {}
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
