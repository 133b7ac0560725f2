//! The outcome of a simulated hold.

use sweetspot_control::hold::{HoldNotice, HoldSetting, HoldSummary};
use sweetspot_quantity::{Megahertz, Seconds, Watts};

use sweetspot_stats::weighted_p99;

/// A fifth of a second of a simulated hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldSample {
    /// The end of the sample.
    pub at: Seconds,
    /// The mean power.
    pub power: Watts,
    /// The batch size at its end.
    pub batch: u64,
    /// The core clock set at its end.
    pub core_clock: Option<Megahertz>,
}

/// The outcome of a simulated hold.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldOutcome {
    /// The summary, by the power that was drawn and not by what the sensor read.
    pub summary: HoldSummary,
    /// The notices of the holder.
    pub notices: Vec<(Seconds, HoldNotice)>,
    /// The settings of the holder, each with its time and the number of its window.
    pub changes: Vec<(Seconds, u64, HoldSetting)>,
    /// The number of the holder's windows.
    pub windows: u64,
    /// The setting at the end.
    pub last: HoldSetting,
    /// Power and settings over time, if they are kept.
    pub samples: Vec<HoldSample>,
    /// The end, the longest latency and the items of each batch.
    pub latencies: Vec<(Seconds, Seconds, u64)>,
}

impl HoldOutcome {
    /// The 99th percentile of the latency, waiting included, of items that were done from a time on.
    pub fn latency_p99(&self, from: Seconds) -> Option<Seconds> {
        let later = self.latencies.iter().filter(|(at, ..)| *at >= from);
        let weighted = later.map(|(_, latency, items)| (latency.get(), *items as f64));
        weighted_p99(weighted.collect()).map(Seconds::new)
    }
}
