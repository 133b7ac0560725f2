//! The summary of a run of `hold`.

use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

/// The summary of a run of `hold`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HoldSummary {
    /// The time from the first event of the run to the last.
    pub time: Seconds,
    /// The number of items that were processed.
    pub items: u64,
    /// The mean number of items per second over the whole run.
    pub items_per_s: f64,
    /// The energy of the device over the time that power readings cover.
    pub energy: Joules,
    /// The energy per item; absent without items.
    pub energy_per_item: Option<Joules>,
    /// The share of the time after settling in which the mean power was above the cap; absent if no mean power was
    /// compared with the cap.
    pub violation_share: Option<Ratio>,
    /// The share of single power samples above the cap; absent if the sensor gives only averages.
    pub fine_share: Option<Ratio>,
    /// The 99th percentile of the single power samples; absent if the sensor gives only averages.
    pub fine_p99: Option<Watts>,
    /// The highest mean power (or single reading, if the cap binds these) after settling; absent if there was none.
    pub largest_mean: Option<Watts>,
    /// The average power after settling; absent if no mean power was compared with the cap.
    pub settled_power: Option<Watts>,
    /// The time during settling in which the mean power (or single reading) was above the cap.
    pub settling_excess: Seconds,
    /// The highest mean power (or single reading) during settling; absent if there was none.
    pub settling_largest: Option<Watts>,
    /// The highest single power sample of the whole run; absent if the sensor gives only averages.
    pub highest_sample: Option<Watts>,
    /// The time in gaps of more than two seconds between power readings, in which the power is unknown.
    pub unread_time: Seconds,
    /// The number of times that the setting was changed.
    pub changes: u64,
    /// The time from the start, or from the last change of the cap, until the setting settled; absent if it still
    /// changed at the end.
    pub settle_time: Option<Seconds>,
    /// The number of measurement windows until the setting settled; absent if it still changed at the end.
    pub settle_windows: Option<u64>,
    /// The mean number of items in a batch; absent without batches.
    pub average_batch: Option<f64>,
}
