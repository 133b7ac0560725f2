//! The outcome of a simulated run of `hold`.

use sweetspot_control::hold::{HoldNotice, HoldSetting, HoldSummary, PowerReading, UnusedPower};
use sweetspot_quantity::{Joules, Megahertz, Seconds, Watts};

use sweetspot_stats::weighted_p99;

/// Power and setting during a fifth of a second of a simulated run of `hold`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldSample {
    /// The end of the sample, from the start of the run.
    pub at: Seconds,
    /// The mean power during the sample.
    pub power: Watts,
    /// The batch size at the end of the sample.
    pub batch: u64,
    /// The core clock that is set at the end of the sample; `None` if none is set.
    pub core_clock: Option<Megahertz>,
}

/// The outcome of `hold` on a simulated GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldOutcome {
    /// Statistics of the run, computed from the true power in steps of 20 ms; if the sensor is instantaneous, its readings
    /// are compared with the cap.
    pub summary: HoldSummary,
    /// The control algorithm's notices, each with its time.
    pub notices: Vec<(Seconds, HoldNotice)>,
    /// The control algorithm's changes of setting: the time, the number of the measurement window, and the new setting.
    pub changes: Vec<(Seconds, u64, HoldSetting)>,
    /// The setting at the start of the simulated run.
    pub first: HoldSetting,
    /// The power that was left below the cap after the setting settled, and what would use it.
    pub unused: Option<UnusedPower>,
    /// The number of measurement windows that the control algorithm has evaluated.
    pub windows: u64,
    /// The setting at the end of the simulated run.
    pub last: HoldSetting,
    /// Power and settings over time; empty unless [`Conditions::keep_samples`](super::Conditions) is set.
    pub samples: Vec<HoldSample>,
    /// The readings that the control algorithm received; empty unless
    /// [`Conditions::keep_readings`](super::Conditions) is set.
    pub readings: Vec<PowerReading>,
    /// For each batch: its end, its longest latency and its number of items.
    pub latencies: Vec<(Seconds, Seconds, u64)>,
    /// The true energy of each GPU.
    pub energy_of_gpus: Vec<Joules>,
    /// Every division of the total power cap among several GPUs, with its time.
    pub caps_of_gpus: Vec<(Seconds, Vec<Watts>)>,
}

impl HoldOutcome {
    /// The 99th percentile of the latency, including waiting, of all items that were finished at `from` or later.
    pub fn latency_p99(&self, from: Seconds) -> Option<Seconds> {
        let later = self.latencies.iter().filter(|(at, ..)| *at >= from);
        let weighted = later.map(|(_, latency, items)| (latency.get(), *items as f64));
        weighted_p99(weighted.collect()).map(Seconds::new)
    }
}
