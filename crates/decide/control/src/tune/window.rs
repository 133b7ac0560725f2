//! One look at a steady load at one setting.

use std::collections::BTreeMap;

use sweetspot_decide::Outcome;
use sweetspot_decide::search::Noise;
use sweetspot_quantity::{Joules, Seconds, Watts};

/// What a window was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// What everything is compared with.
    Reference,
    /// A setting was tried.
    Explore,
    /// The choice was held, for the first time or since the last such window.
    Hold,
}

/// A window, measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// What it was for.
    pub purpose: Purpose,
    /// At which place.
    pub place: usize,
    /// When it began.
    pub begin: Seconds,
    /// When it ended.
    pub end: Seconds,
    /// Drawn on average, all devices together.
    pub power: Watts,
    /// Done in a second, where known.
    pub items_per_second: Option<f64>,
    /// Standard deviation of its time and energy for an item, as fractions.
    pub noise: Noise,
}

impl Window {
    /// How long it was.
    pub fn time(&self) -> Seconds {
        self.end - self.begin
    }

    /// For an item, where progress is known.
    pub fn time_per_item(&self) -> Option<Seconds> {
        self.items_per_second.map(|rate| Seconds::new(1.0 / rate))
    }

    /// For an item, where progress is known.
    pub fn energy_per_item(&self) -> Option<Joules> {
        Some(self.power * self.time_per_item()?)
    }

    /// What so many items come to at this setting; without progress, the window itself.
    pub(super) fn outcome(&self, items: Option<f64>, gpus: u64) -> Outcome {
        let (time, items) = match (self.items_per_second, items) {
            (Some(rate), Some(items)) => (Seconds::new(items / rate), Some(items)),
            _ => (self.time(), None),
        };
        Outcome {
            time,
            energy: Some(self.power * time),
            items,
            gpus,
            start: None,
            values: BTreeMap::new(),
        }
    }
}
