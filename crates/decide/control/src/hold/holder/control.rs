//! What decides: one of the paper's searches, a ladder, a grid, or the device itself.

use crate::hold::joint::Joint;
use crate::hold::robust::Robust;
use crate::hold::search::Search;
use crate::hold::terms::{DeviceKnob, Mode, Terms};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::hold) struct Place {
    pub batch: usize,
    pub level: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Control {
    /// One of the paper's, over batch sizes or over levels.
    Search {
        search: Search,
        over_levels: bool,
    },
    Robust {
        ladder: Robust,
        over_levels: bool,
    },
    Joint(Joint),
    /// The device holds its own cap: the highest level that is no higher, less so many where that is not enough.
    OwnCap {
        lower: usize,
    },
}

impl Control {
    pub(super) fn new(terms: &Terms) -> Self {
        let alpha = terms.alpha.get();
        let levels = terms.knob.levels();
        let over_levels = terms.sets_device_alone();
        match terms.mode {
            Mode::Robust => match &terms.knob {
                DeviceKnob::None => Self::Robust {
                    ladder: Robust::new(terms),
                    over_levels,
                },
                DeviceKnob::CoreClock(clocks) => Self::Robust {
                    ladder: Robust::of_clocks(
                        terms,
                        clocks.iter().map(|clock| clock.get()).collect(),
                    ),
                    over_levels,
                },
                DeviceKnob::PowerCap(_) => Self::OwnCap { lower: 0 },
            },
            Mode::Joint => Self::Joint(Joint::new(terms)),
            mode => Self::Search {
                search: Search::new(
                    mode,
                    alpha,
                    if over_levels {
                        levels
                    } else {
                        terms.batches.len()
                    },
                ),
                over_levels,
            },
        }
    }

    /// The level of the device to begin with.
    pub(super) fn first_level(&mut self, terms: &Terms) -> usize {
        match self {
            Self::Joint(joint) => joint.first_level(terms.cap.get()),
            Self::OwnCap { .. } => terms.own_cap(0),
            _ if terms.sets_device_alone() => 0,
            _ => terms.knob.levels().saturating_sub(1),
        }
    }

    /// What a setting draws, as measured.
    pub(super) fn power_at(&self, place: Place) -> Option<f64> {
        match self {
            Self::Robust {
                ladder,
                over_levels,
            } => ladder.power_at(place.rung(*over_levels)),
            Self::Joint(joint) => joint.power_at(place),
            Self::OwnCap { .. } | Self::Search { .. } => None,
        }
    }
}

impl Place {
    pub(super) fn rung(self, over_levels: bool) -> usize {
        if over_levels { self.level } else { self.batch }
    }

    pub(super) fn with_rung(self, rung: usize, over_levels: bool) -> Self {
        match over_levels {
            true => Self {
                level: rung,
                ..self
            },
            false => Self {
                batch: rung,
                ..self
            },
        }
    }
}
