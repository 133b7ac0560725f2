//! What came of a run in virtual time.

use sweetspot_control::hold::{HoldNotice, HoldSetting, HoldSummary};
use sweetspot_quantity::{Megahertz, Seconds, Watts};

use crate::hold::record::percentile99;

/// A fifth of a second of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sighting {
    /// Its end.
    pub at: Seconds,
    /// Its mean power.
    pub power: Watts,
    /// The batch size at its end.
    pub batch: u64,
    /// The core clock set at its end.
    pub core_clock: Option<Megahertz>,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The account of it, by the power drawn and not by the sensor.
    pub summary: HoldSummary,
    /// What the holder said.
    pub notices: Vec<(Seconds, HoldNotice)>,
    /// What it set, and in which of its windows.
    pub changes: Vec<(Seconds, u64, HoldSetting)>,
    /// Windows in all.
    pub windows: u64,
    /// What was set at the end.
    pub last: HoldSetting,
    /// Over time, where kept.
    pub sightings: Vec<Sighting>,
    /// Of each batch its end, its longest latency and its items.
    pub latencies: Vec<(Seconds, Seconds, u64)>,
}

impl Held {
    /// 99 of 100 items that were done from then on took no longer, waiting included.
    pub fn latency_p99(&self, from: Seconds) -> Option<Seconds> {
        let later = self.latencies.iter().filter(|(at, ..)| *at >= from);
        let weighted = later.map(|(_, latency, items)| (latency.get(), *items as f64));
        percentile99(weighted.collect()).map(Seconds::new)
    }
}
