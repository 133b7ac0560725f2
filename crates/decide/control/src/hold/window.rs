//! The batches and mean powers of one measurement window at one setting.

use super::candidate::OperatingLimits;
use super::cap_on::CapOn;
use super::event::CompletedBatch;
use super::power_mean::PowerMean;

/// The number of latest latencies that a measurement window stores, which is enough for a 99th percentile.
const STORED_LATENCIES: usize = 128;

/// Batches count as full if they contain at least this share of the items that they have room for.
const FULL_BATCH_SHARE: f64 = 0.9;

/// A mean power above the cap by at most this factor is a slight excess, which is tolerated if it is rare.
const SLIGHT_EXCESS: f64 = 1.005;
/// The share of the mean powers at one setting that may exceed the cap slightly.
const SLIGHT_EXCESS_SHARE: f64 = 0.003;

/// A measurement window in progress: it collects batches and mean powers.
#[derive(Clone, Debug)]
pub struct HoldWindow {
    /// The number of completed batches of the requested size.
    pub batches: u32,
    items: u64,
    /// The sum of the batch sizes: the number of items that the batches have room for.
    capacity: u64,
    /// The sum of the durations of all batches, in seconds.
    busy: f64,
    /// The duration of the longest batch, in seconds.
    longest: f64,
    latencies: [f64; STORED_LATENCIES],
    /// The two highest mean powers of the measurement window, in watts.
    highest: [f64; 2],
    /// The number of mean powers in the measurement window.
    means: u32,
    /// The sum of all mean powers, in watts, from which their average is computed.
    sum: f64,
    /// The end times of the first and the last mean power, in seconds; absent without mean powers.
    ends: Option<(f64, f64)>,
    /// The number of mean powers that clearly exceed the cap even without their highest sample.
    excesses: u32,
    /// The end time of the first mean power that was clearly above the cap, in seconds; absent if none was.
    first_excess: Option<f64>,
    at_setting: SettingCounts,
    /// What the cap binds.
    cap_on: CapOn,
}

/// Counts over all measurement windows since the setting took effect.
#[derive(Clone, Copy, Debug, Default)]
struct SettingCounts {
    means: u32,
    /// The number of mean powers slightly above the cap.
    slight_excesses: u32,
}

/// The result of a complete measurement window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowMeasurement {
    /// The highest mean power over the averaging time, in watts; a single outlier is left out.
    pub power: f64,
    /// The mean power over the measurement window, in watts.
    pub mean_power: f64,
    /// The throughput in items per second; the time spent waiting for items is excluded.
    pub rate: f64,
    /// The 99th percentile of the latency, queueing included, in seconds.
    pub p99: f64,
    /// The duration of the longest batch, in seconds.
    pub duration: f64,
    /// The share of the batches' capacity that items filled: the number of items divided by the sum of the batch sizes.
    pub fill: f64,
}

impl WindowMeasurement {
    /// Whether the batches were full on average.
    pub fn is_full(&self) -> bool {
        self.fill >= FULL_BATCH_SHARE
    }

    /// Whether power and latency meet the limits.
    pub fn meets(&self, limits: &OperatingLimits) -> bool {
        self.power <= limits.cap && self.p99 <= limits.latency
    }
}

impl HoldWindow {
    pub fn new(cap_on: CapOn) -> Self {
        Self {
            batches: 0,
            items: 0,
            capacity: 0,
            busy: 0.0,
            longest: 0.0,
            latencies: [0.0; STORED_LATENCIES],
            highest: [f64::NEG_INFINITY; 2],
            means: 0,
            sum: 0.0,
            ends: None,
            excesses: 0,
            first_excess: None,
            at_setting: SettingCounts::default(),
            cap_on,
        }
    }

    /// Starts the next measurement window at the same setting.
    pub fn restart(&mut self) {
        // The stored latencies need not be cleared: later batches overwrite them.
        let Self {
            latencies,
            at_setting,
            ..
        } = *self;
        *self = Self {
            latencies,
            at_setting,
            ..Self::new(self.cap_on)
        };
    }

    /// Starts the first measurement window at another setting.
    pub fn start_setting(&mut self) {
        self.at_setting = SettingCounts::default();
        self.restart();
    }

    /// Adds a completed batch to the measurement window.
    pub fn add_batch(&mut self, batch: &CompletedBatch) {
        let duration = batch.duration.get();
        let latency = batch.latency.map_or(duration, |latency| latency.get());
        if !(duration.is_finite() && duration >= 0.0 && latency.is_finite()) {
            return;
        }
        self.latencies[self.batches as usize % STORED_LATENCIES] = latency;
        self.batches = self.batches.saturating_add(1);
        self.items = self.items.saturating_add(batch.items);
        self.capacity = self.capacity.saturating_add(batch.size);
        self.busy += duration;
        self.longest = self.longest.max(duration);
    }

    /// Adds a mean power and returns whether the cap is certainly exceeded: two mean powers exceed it clearly
    /// without their highest sample or in spans that do not overlap, or more than a few exceed it slightly.
    pub fn add_power(&mut self, mean: &PowerMean, cap: f64) -> bool {
        let PowerMean {
            power, trimmed, to, ..
        } = *mean;
        if power > self.highest[0] {
            self.highest = [power, self.highest[0]];
        } else if power > self.highest[1] {
            self.highest[1] = power;
        }
        let (first, _) = self.ends.unwrap_or((to, to));
        self.ends = Some((first, to));
        self.means = self.means.saturating_add(1);
        self.at_setting.means = self.at_setting.means.saturating_add(1);
        self.sum += mean.average;
        let averaging_time = match self.cap_on {
            CapOn::Mean(time) => time.get(),
            CapOn::Reading => return trimmed > cap,
        };
        if power <= cap {
            return false;
        }
        if power <= cap * SLIGHT_EXCESS {
            let counts = &mut self.at_setting;
            counts.slight_excesses = counts.slight_excesses.saturating_add(1);
            let tolerated = 2.0 + SLIGHT_EXCESS_SHARE * f64::from(counts.means);
            return f64::from(counts.slight_excesses) >= tolerated;
        }
        let first = *self.first_excess.get_or_insert(to);
        if trimmed > cap {
            self.excesses += 1;
        }
        self.excesses >= 2 || to - first >= averaging_time
    }

    /// Forgets all excesses, because the cap changed.
    pub fn forget_excesses(&mut self) {
        self.excesses = 0;
        self.first_excess = None;
        self.at_setting = SettingCounts::default();
    }

    /// Whether the mean powers cover at least two batches: with fewer, the mean depends on which part of a batch it
    /// contains.
    pub fn covers_batches(&self) -> bool {
        let covered = self.ends.map(|(first, last)| last - first);
        covered.is_some_and(|covered| self.longest < 0.05 || covered >= 2.0 * self.longest)
    }

    /// Whether the measurement window contains a mean power.
    pub fn has_power(&self) -> bool {
        self.means > 0
    }

    /// The result of the measurement window; `None` if it is incomplete. Its power is the highest
    /// of the mean powers that the sensor gave in the window, or the second highest of three or more, since one reading
    /// may be wrong. A tolerated slight excess is reported as power at the
    /// cap.
    pub fn result(&self, cap: f64) -> Option<WindowMeasurement> {
        if self.means == 0 || self.batches == 0 {
            return None;
        }
        let power = match self.means {
            1 | 2 => self.highest[0],
            _ => self.highest[1],
        };
        let is_tolerated = self.cap_on != CapOn::Reading && power <= cap * SLIGHT_EXCESS;
        Some(WindowMeasurement {
            power: match is_tolerated {
                true => power.min(cap),
                false => power,
            },
            mean_power: self.sum / f64::from(self.means),
            rate: self.rate(),
            p99: self.p99(),
            duration: self.longest,
            fill: self.items as f64 / (self.capacity.max(1)) as f64,
        })
    }

    /// The highest mean power of the measurement window in watts, even if it is an outlier; `None` if there is none.
    pub fn highest_power(&self) -> Option<f64> {
        self.has_power().then_some(self.highest[0])
    }

    /// The throughput in items per second; the time spent waiting for items is excluded.
    pub fn rate(&self) -> f64 {
        self.items as f64 / self.busy.max(1e-9)
    }

    /// The duration of the longest batch, in seconds.
    pub fn longest_batch(&self) -> f64 {
        self.longest
    }

    /// The 99th percentile of the stored latencies, in seconds.
    pub fn p99(&self) -> f64 {
        let count = (self.batches as usize).min(STORED_LATENCIES);
        let mut sorted = self.latencies;
        let sorted = &mut sorted[..count];
        sorted.sort_unstable_by(f64::total_cmp);
        let index = (count * 99).div_ceil(100).max(1) - 1;
        sorted.get(index).copied().unwrap_or(0.0)
    }
}
