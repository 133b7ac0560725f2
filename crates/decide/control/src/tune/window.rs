//! A measurement window at one setting.

use std::collections::BTreeMap;

use sweetspot_decide::Outcome;
use sweetspot_decide::search::Noise;
use sweetspot_quantity::{Joules, Seconds, Watts};

/// The purpose of a measurement window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowPurpose {
    /// The measurement window measures the reference.
    Reference,
    /// The measurement window measures a tried setting.
    Explore,
    /// The measurement window monitors the chosen setting.
    Hold,
}

/// The measurement of a job over some seconds at one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneWindow {
    /// Why the measurement window was taken.
    pub purpose: WindowPurpose,
    /// The index of the point of the search space that was set.
    pub point: usize,
    /// The start of the measurement window, from the start of the job.
    pub begin: Seconds,
    /// The end of the measurement window, from the start of the job.
    pub end: Seconds,
    /// The mean power of all devices together.
    pub power: Watts,
    /// The number of items processed per second; absent if the job reports no progress.
    pub items_per_second: Option<f64>,
    /// The relative standard deviations of the time and the energy of an item.
    pub noise: Noise,
}

impl TuneWindow {
    /// The length of the measurement window.
    pub fn time(&self) -> Seconds {
        self.end - self.begin
    }

    /// The time for each item; absent if the job reports no progress.
    pub fn time_per_item(&self) -> Option<Seconds> {
        self.items_per_second.map(|rate| Seconds::new(1.0 / rate))
    }

    /// The energy for each item; absent if the job reports no progress.
    pub fn energy_per_item(&self) -> Option<Joules> {
        Some(self.power * self.time_per_item()?)
    }

    /// The outcome of processing this many items at the window's setting; if progress is unknown, the outcome of the
    /// measurement window itself.
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
