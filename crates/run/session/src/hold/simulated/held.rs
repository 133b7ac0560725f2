//! The outcome of a hold in virtual time.

use sweetspot_control::hold::{HoldNotice, HoldSetting, HoldSummary};
use sweetspot_quantity::{Megahertz, Seconds, Watts};

use crate::hold::record::percentile99;

/// The power and the setting over a fifth of a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerSample {
    /// The end of the span.
    pub at: Seconds,
    /// The mean power of the span.
    pub power: Watts,
    /// The batch size at its end.
    pub batch: u64,
    /// The core clock set at its end.
    pub core_clock: Option<Megahertz>,
}

/// The outcome of a hold in virtual time.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldOutcome {
    /// The summary by the true power, not by the sensor.
    pub summary: HoldSummary,
    /// The notices of the holder.
    pub notices: Vec<(Seconds, HoldNotice)>,
    /// The changes of the setting, with the number of the window.
    pub changes: Vec<(Seconds, u64, HoldSetting)>,
    /// The number of windows.
    pub windows: u64,
    /// The setting at the end.
    pub last: HoldSetting,
    /// Power and settings over time, where the conditions ask for them.
    pub samples: Vec<PowerSample>,
    /// The end, the longest latency and the number of items of each batch.
    pub latencies: Vec<(Seconds, Seconds, u64)>,
}

impl HoldOutcome {
    /// The 99th percentile of the latency of items that were completed since a time, waiting included.
    pub fn latency_p99(&self, from: Seconds) -> Option<Seconds> {
        let later = self.latencies.iter().filter(|(at, ..)| *at >= from);
        let weighted = later.map(|(_, latency, items)| (latency.get(), *items as f64));
        percentile99(weighted.collect()).map(Seconds::new)
    }
}
