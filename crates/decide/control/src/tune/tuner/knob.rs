//! The choice of the knob to tune for a load.

use super::super::KnobChoice;
use super::super::load::LoadSpace;
use super::super::notice::{GiveUpReason, TuneNotice};
use super::super::window::TuneWindow;
use super::{Task, Tuner};
use crate::limit::{LoadEvidence, LoadLimit};

impl Tuner {
    /// What limits a load on each device while the reference is set.
    pub(super) fn load_limit(&self, reference: &TuneWindow) -> LoadLimit {
        let counters = self.monitor.limits_between(reference.begin, reference.end);
        LoadLimit::decide(&LoadEvidence {
            power: Some(reference.power * (1.0 / self.config.gpus as f64)),
            ..counters
        })
    }

    /// Chooses the knob to tune for the present load, if the user left that to the tuner. Returns the reason to give up
    /// if no knob can help.
    pub(super) fn choose_knob(&mut self, now: f64, reference: &TuneWindow) -> Option<GiveUpReason> {
        let (limit, lowest) = self.load.limit.zip(self.config.lowest_cap)?;
        self.config.clocks.as_ref()?;
        let devices = 1.0 / self.config.gpus as f64;
        let choice = KnobChoice::decide(reference.power * devices, lowest * devices, &limit);
        let Some(knob) = choice.knob() else {
            return Some(GiveUpReason::NothingHelps(limit));
        };
        self.notify(now, TuneNotice::KnobChosen(choice));
        self.load.search_in(&self.config, LoadSpace::of_knob(knob));
        None
    }

    /// Tunes the other knob if the device has rejected the first setting of the chosen one, which the user may not be
    /// allowed to change; returns whether it does.
    pub(super) fn try_other_knob(&mut self, now: f64, reason: &str) -> bool {
        let space = self.load.space;
        let is_first = self.load.rejection_count(&self.config) == 1
            && !self.load.has_tried_space(&self.config);
        if self.config.clocks.is_none() || !is_first || self.load.has_changed_knob {
            return false;
        }
        self.load.has_changed_knob = true;
        let notice = TuneNotice::OtherKnob {
            rejected: space.knob(),
            tuned: space.other().knob(),
            reason: reason.to_owned(),
        };
        self.notify(now, notice);
        self.load.search_in(&self.config, space.other());
        let reference = self.load.reference.clone();
        match reference.and_then(|reference| self.point_to_probe(&reference)) {
            Some(point) => self.set(now, point, Task::Probe),
            None => self.try_next(now),
        }
        true
    }
}
