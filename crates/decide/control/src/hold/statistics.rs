//! Statistics of a run of `hold`.

mod mean_powers;
mod settling;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use super::cap_on::CapOn;
use super::event::{CompletedBatch, PowerReading};
use super::power_mean::PowerAverager;
use super::summary::HoldSummary;
use crate::ReadingGaps;
use mean_powers::{CountedMean, MeanPowers};
use settling::{Settling, SettlingPeriod};

/// The setting counts as settled after this many measurement windows without a change.
const SETTLED_WINDOWS: u64 = 3;
/// After this many measurement windows, mean powers are compared with the cap even if the setting still changes.
const SETTLING_DEADLINE: u64 = 15;
/// A reading that covers less time than this is a single reading; a longer one is a mean.
const SINGLE_READING: Seconds = Seconds::new(0.5);
/// The number of bins of the histogram of power samples, each 1 W wide.
const BINS: usize = 16_384;

/// Collects the events of a run and computes its [`HoldSummary`].
///
/// Mean powers are compared with the cap after the setting has settled. Settling starts with the run and with each
/// change of the cap, and ends with the last change of the setting that is followed by three measurement windows
/// without a change. After fifteen windows mean powers are compared in any case. Each mean power is weighted by the
/// time since the previous one. If the cap binds every reading, single readings take the place of mean powers.
///
/// Mean powers before that are those of settling, and are counted on their own.
#[derive(Clone, Debug)]
pub struct HoldStatistics {
    cap_on: CapOn,
    cap: Watts,
    averager: PowerAverager,
    started_at: Option<f64>,
    now: f64,
    items: u64,
    batches: u64,
    /// The energy that the power readings cover, in joules.
    energy: f64,
    readings: ReadingGaps,
    last_mean_end: Option<f64>,
    changes: u64,
    windows: u64,
    settling: Settling,
    /// When settling began: the time in seconds, and the number of measurement windows.
    settling_from: (f64, u64),
    /// The mean powers after settling.
    settled: MeanPowers,
    /// The mean powers during settling.
    before: MeanPowers,
    /// The mean powers since the last change of the setting, which are compared with the cap once the setting has
    /// settled.
    pending: VecDeque<CountedMean>,
    sample_histogram: Vec<u32>,
    sample_count: u64,
    samples_over_cap: u64,
    highest_sample: Option<f64>,
}

impl HoldStatistics {
    /// Creates statistics for a cap and what it binds.
    pub fn new(cap: Watts, cap_on: CapOn) -> Self {
        Self {
            cap_on,
            cap,
            averager: PowerAverager::new(cap_on),
            started_at: None,
            now: 0.0,
            items: 0,
            batches: 0,
            energy: 0.0,
            readings: ReadingGaps::default(),
            last_mean_end: None,
            changes: 0,
            windows: 0,
            settling: Settling::NotStarted,
            settling_from: (0.0, 0),
            settled: MeanPowers::default(),
            before: MeanPowers::default(),
            pending: VecDeque::new(),
            sample_histogram: vec![0; BINS],
            sample_count: 0,
            samples_over_cap: 0,
            highest_sample: None,
        }
    }

    /// Records the start of the run.
    pub fn start(&mut self, now: Seconds) {
        self.started_at = Some(now.get());
        self.advance_to(now.get());
        self.restart_settling(now);
    }

    /// Records a completed batch.
    pub fn record_batch(&mut self, now: Seconds, batch: &CompletedBatch) {
        self.advance_to(now.get());
        self.items = self.items.saturating_add(batch.items);
        self.batches += 1;
        self.take_effect(now.get() - batch.duration.get());
    }

    /// Records a change of the cap.
    pub fn record_cap(&mut self, now: Seconds, cap: Watts) {
        self.count_pending();
        self.cap = cap;
        self.restart_settling(now);
    }

    /// Starts settling again, because the cap or the load changed.
    pub fn restart_settling(&mut self, now: Seconds) {
        self.settling_from = (now.get(), self.windows);
        self.continue_settling(now);
    }

    /// Continues settling, because watts have moved between GPUs and settings are searched anew.
    pub fn continue_settling(&mut self, now: Seconds) {
        self.count_pending();
        let now = now.get();
        self.advance_to(now);
        self.settling = Settling::InProgress(SettlingPeriod {
            started_at: self.settling_from.0,
            start_window: self.windows,
            last_change: now,
            last_change_window: self.windows,
            is_in_effect: false,
        });
    }

    /// Records that the setting was changed.
    pub fn record_change(&mut self, now: Seconds) {
        let now = now.get();
        self.advance_to(now);
        self.changes += 1;
        if let Settling::InProgress(period) | Settling::Overdue(period) = &mut self.settling {
            period.last_change = now;
            period.last_change_window = self.windows;
            period.is_in_effect = false;
            // They belong to a setting that did not last.
            self.pending
                .drain(..)
                .for_each(|mean| self.before.count(mean));
        }
    }

    /// Notes that a batch began. A batch that ran when the setting was changed has the earlier setting, so that a reading
    /// from before the first batch at the new one belongs to settling.
    fn take_effect(&mut self, batch_start: f64) {
        let (Settling::InProgress(period) | Settling::Overdue(period)) = &mut self.settling else {
            return;
        };
        if period.is_in_effect || batch_start < period.last_change {
            return;
        }
        period.is_in_effect = true;
        let is_earlier = |mean: &CountedMean| mean.from < batch_start;
        while self.cap_on == CapOn::Reading && self.pending.front().is_some_and(is_earlier) {
            if let Some(mean) = self.pending.pop_front() {
                self.before.count(mean);
            }
        }
    }

    /// Sets how many measurement windows the controller has completed so far.
    pub fn set_window_count(&mut self, windows: u64) {
        self.windows = windows;
        let (Settling::InProgress(period) | Settling::Overdue(period)) = self.settling else {
            return;
        };
        if windows.saturating_sub(period.last_change_window) >= SETTLED_WINDOWS {
            self.settling = Settling::Settled {
                time: period.last_change - period.started_at,
                windows: period.last_change_window - self.settling_from.1,
            };
            self.count_pending();
        } else if windows.saturating_sub(period.start_window) >= SETTLING_DEADLINE {
            self.settling = Settling::Overdue(period);
            self.count_pending();
        }
    }

    /// Records a power reading.
    pub fn record_power(&mut self, reading: &PowerReading) {
        let (from, to, power) = (reading.from.get(), reading.to.get(), reading.power.get());
        if !(power.is_finite() && to > from) {
            return;
        }
        let Some(new) = self.readings.record(reading.from, reading.to) else {
            return;
        };
        self.energy += power * new.get();
        let is_single = reading.to - reading.from < SINGLE_READING;
        if is_single {
            let bin = (power.max(0.0) as usize).min(BINS - 1);
            self.sample_histogram[bin] = self.sample_histogram[bin].saturating_add(1);
            self.sample_count += 1;
            self.samples_over_cap += u64::from(power > self.cap.get());
            let highest = self.highest_sample;
            self.highest_sample = Some(highest.map_or(power, |highest| highest.max(power)));
        }
        match self.cap_on {
            CapOn::Mean(time) => {
                if let Some(mean) = self.averager.push(reading) {
                    self.take_mean(mean.power, mean.to, time.get());
                }
            }
            CapOn::Reading if is_single => self.take_mean(power, to, to - from),
            CapOn::Reading => {}
        }
    }

    /// Takes a mean power over a span of seconds that ends at `to`.
    fn take_mean(&mut self, power: f64, to: f64, span: f64) {
        // After a gap in the readings, a mean is weighted by its own span and not by the gap.
        let since_last = self.last_mean_end.map_or(0.0, |last| to - last);
        self.last_mean_end = Some(to);
        let mean = CountedMean {
            from: to - span,
            time: since_last.min(span),
            power,
            is_over_cap: power > self.cap.get(),
        };
        match self.settling {
            Settling::InProgress(period) if to - span < period.last_change => {
                self.before.count(mean);
            }
            Settling::InProgress(_) => self.pending.push_back(mean),
            _ => self.settled.count(mean),
        }
    }

    /// Adds all pending mean powers to the comparison with the cap.
    fn count_pending(&mut self) {
        self.pending
            .drain(..)
            .for_each(|mean| self.settled.count(mean));
    }

    /// Updates the time of the latest event.
    fn advance_to(&mut self, now: f64) {
        self.started_at.get_or_insert(now);
        self.readings.start(Seconds::new(now));
        self.now = self.now.max(now);
    }

    /// The summary of the run up to now.
    pub fn summary(&self) -> HoldSummary {
        let mut complete = self.clone();
        complete.count_pending();
        complete.summarise()
    }

    /// Computes the summary from the values recorded so far.
    fn summarise(&self) -> HoldSummary {
        let time = self.now - self.started_at.unwrap_or(self.now);
        let items = self.items as f64;
        let share = |part: f64, of: f64| (of > 0.0).then(|| Ratio::new(part / of));
        let settled = &self.settled;
        let settling = match self.settling {
            Settling::Settled { time, windows } => Some((time, windows)),
            Settling::NotStarted | Settling::InProgress(_) | Settling::Overdue(_) => None,
        };
        HoldSummary {
            time: Seconds::new(time),
            items: self.items,
            items_per_s: if time > 0.0 { items / time } else { 0.0 },
            energy: Joules::new(self.energy),
            energy_per_item: (self.items > 0).then(|| Joules::new(self.energy / items)),
            violation_share: share(settled.excess_time, settled.time),
            fine_share: share(self.samples_over_cap as f64, self.sample_count as f64),
            fine_p99: self.fine_p99(),
            largest_mean: settled.highest.map(Watts::new),
            settled_power: (settled.time > 0.0).then(|| Watts::new(settled.energy / settled.time)),
            settling_excess: Seconds::new(self.before.excess_time),
            settling_largest: self.before.highest.map(Watts::new),
            highest_sample: self.highest_sample.map(Watts::new),
            unread_time: self.readings.unread_until(Seconds::new(self.now)),
            changes: self.changes,
            settle_time: settling.map(|(time, _)| Seconds::new(time)),
            settle_windows: settling.map(|(_, windows)| windows),
            average_batch: (self.batches > 0).then(|| items / self.batches as f64),
        }
    }

    /// The 99th percentile of the single power samples; `None` without samples.
    fn fine_p99(&self) -> Option<Watts> {
        let wanted = (self.sample_count * 99).div_ceil(100);
        let mut counted = 0;
        let bin = self.sample_histogram.iter().position(|count| {
            counted += u64::from(*count);
            counted >= wanted
        })?;
        (self.sample_count > 0).then(|| Watts::new(bin as f64 + 1.0))
    }
}
