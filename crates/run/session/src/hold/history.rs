//! The history of a hold: power, batches, settings, caps and notices over time.

use std::collections::VecDeque;

use sweetspot_control::hold::{HoldSetting, PowerReading};
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_stats::weighted_p99;

use super::result::{HoldStatus, TimeSlice};

/// The time that each bucket of the history covers at the start, in seconds. It doubles whenever there are
/// [`MAX_BUCKETS`] buckets.
const FIRST_BUCKET_WIDTH: f64 = 0.25;
/// When the history has this many buckets, neighbouring ones are merged, so memory stays bounded.
const MAX_BUCKETS: usize = 2400;
/// The time over which the throughput in the status line is computed, in seconds.
const RATE_WINDOW: f64 = 2.0;
/// The time over which the p99 latency in the status line is computed, in seconds.
const P99_WINDOW: f64 = 5.0;
/// The time over which the power in the status line is averaged, in seconds.
const POWER_WINDOW: f64 = 1.0;
/// The maximum number of stored latencies: when it is reached, every second latency is dropped.
const MAX_LATENCIES: usize = 1 << 20;

/// Energy, items, cap and setting in one time interval of a run of `hold`.
#[derive(Clone, Copy, Default)]
struct Bucket {
    energy: f64,
    covered: f64,
    highest: Option<f64>,
    items: u64,
    cap: f64,
    setting: Option<HoldSetting>,
}

/// Records power, batches, settings, caps and messages of a run of `hold`. Times count from the start of the command.
pub struct HoldHistory {
    /// The time that each bucket covers, in seconds.
    width: f64,
    buckets: Vec<Bucket>,
    pub settings: Vec<(Seconds, HoldSetting)>,
    pub caps: Vec<(Seconds, Watts)>,
    pub notices: Vec<(Seconds, String)>,
    recent_items: VecDeque<(f64, u64)>,
    recent_power: VecDeque<PowerReading>,
    /// For each recent batch: its end in seconds, its latency in seconds and its items.
    recent_latencies: VecDeque<(f64, f64, u64)>,
    /// For each batch: its start in seconds, its latency in seconds and its items.
    all_latencies: Vec<(f32, f32, u32)>,
}

impl HoldHistory {
    /// Creates a history that starts with this cap and setting.
    pub fn new(cap: Watts, setting: HoldSetting) -> Self {
        Self {
            width: FIRST_BUCKET_WIDTH,
            buckets: Vec::new(),
            settings: vec![(Seconds::ZERO, setting)],
            caps: vec![(Seconds::ZERO, cap)],
            notices: Vec::new(),
            recent_items: VecDeque::new(),
            recent_power: VecDeque::new(),
            recent_latencies: VecDeque::new(),
            all_latencies: Vec::new(),
        }
    }

    /// The current power cap.
    pub fn cap(&self) -> Watts {
        self.caps.last().map_or(Watts::ZERO, |(_, cap)| *cap)
    }

    /// Merges neighbouring buckets, so each covers twice the time.
    fn merge_bucket_pairs(&mut self) {
        self.width *= 2.0;
        let pairs = self.buckets.chunks(2).map(|pair| {
            let mut sum = pair[0];
            if let Some(second) = pair.get(1) {
                sum.energy += second.energy;
                sum.covered += second.covered;
                sum.highest = sum
                    .highest
                    .into_iter()
                    .chain(second.highest)
                    .reduce(f64::max);
                sum.items += second.items;
                (sum.cap, sum.setting) = (second.cap, second.setting.or(sum.setting));
            }
            sum
        });
        self.buckets = pairs.collect();
    }

    /// The bucket that covers the time `at`, in seconds; missing buckets are added.
    fn bucket_at(&mut self, at: f64) -> &mut Bucket {
        let mut index = (at.max(0.0) / self.width) as usize;
        while index >= MAX_BUCKETS {
            self.merge_bucket_pairs();
            index /= 2;
        }
        if index >= self.buckets.len() {
            let cap = self.cap().get();
            let setting = self.settings.last().map(|(_, setting)| *setting);
            let fresh = Bucket {
                cap,
                setting,
                ..Bucket::default()
            };
            self.buckets.resize(index + 1, fresh);
        }
        &mut self.buckets[index]
    }

    /// Records a batch that ended at `at`.
    pub fn record_batch(&mut self, at: Seconds, items: u64, duration: Seconds, latency: Seconds) {
        let at = at.get();
        let bucket = self.bucket_at(at);
        bucket.items = bucket.items.saturating_add(items);
        self.recent_items.push_back((at, items));
        self.recent_latencies.push_back((at, latency.get(), items));
        if self.all_latencies.len() >= MAX_LATENCIES {
            let mut index = 0;
            self.all_latencies.retain(|_| {
                index += 1;
                index % 2 == 0
            });
        }
        self.all_latencies.push((
            (at - duration.get()) as f32,
            latency.get() as f32,
            items.min(u32::MAX.into()) as u32,
        ));
    }

    /// Adds a power reading to the buckets that it covers.
    pub fn record_power(&mut self, reading: &PowerReading) {
        let span = (reading.to - reading.from).get();
        let power = reading.power.get();
        let bucket = self.bucket_at(reading.to.get());
        bucket.energy += power * span;
        bucket.covered += span;
        bucket.highest = Some(bucket.highest.map_or(power, |high| high.max(power)));
        self.recent_power.push_back(*reading);
    }

    /// Records a new setting.
    pub fn record_setting(&mut self, at: Seconds, setting: HoldSetting) {
        self.settings.push((at, setting));
        self.bucket_at(at.get()).setting = Some(setting);
    }

    /// Records a new power cap.
    pub fn record_cap(&mut self, at: Seconds, cap: Watts) {
        self.caps.push((at, cap));
        self.bucket_at(at.get()).cap = cap.get();
    }

    /// The current state, for the status line.
    pub fn status(&mut self, now: Seconds) -> HoldStatus {
        let at = now.get();
        while (self.recent_items.front()).is_some_and(|(then, _)| at - then > RATE_WINDOW) {
            self.recent_items.pop_front();
        }
        while (self.recent_latencies.front()).is_some_and(|(then, ..)| at - then > P99_WINDOW) {
            self.recent_latencies.pop_front();
        }
        while (self.recent_power.front()).is_some_and(|one| at - one.to.get() > POWER_WINDOW) {
            self.recent_power.pop_front();
        }
        let items: u64 = self.recent_items.iter().map(|(_, items)| items).sum();
        let latencies = self.recent_latencies.iter();
        let latencies = latencies.map(|(_, latency, items)| (*latency, *items as f64));
        let (energy, covered) = self.recent_power.iter().fold((0.0, 0.0), |sum, one| {
            let span = (one.to - one.from).get();
            (sum.0 + one.power.get() * span, sum.1 + span)
        });
        HoldStatus {
            elapsed: now,
            power: (covered > 0.0).then(|| Watts::new(energy / covered)),
            cap: self.cap(),
            setting: self.settings[self.settings.len() - 1].1,
            items_per_s: (items > 0).then(|| items as f64 / RATE_WINDOW.min(at.max(0.1))),
            p99: weighted_p99(latencies.collect()).map(Seconds::new),
        }
    }

    /// The p99 latency of items whose batch began at `from` or later.
    pub fn p99_since(&self, from: Seconds) -> Option<Seconds> {
        let all = self.all_latencies.iter();
        let later = all.filter(|(at, ..)| f64::from(*at) >= from.get());
        let weighted = later.map(|(_, latency, items)| (f64::from(*latency), f64::from(*items)));
        weighted_p99(weighted.collect()).map(Seconds::new)
    }

    /// The number of items per second between two times, which are rounded to whole buckets; `None` if there
    /// are no buckets.
    pub fn rate_between(&self, from: Seconds, to: Seconds) -> Option<f64> {
        let first = (from.get() / self.width).ceil() as usize;
        let last = ((to.get() / self.width).floor() as usize).min(self.buckets.len());
        let part = self
            .buckets
            .get(first..last)
            .filter(|part| !part.is_empty())?;
        let items: u64 = part.iter().map(|bucket| bucket.items).sum();
        Some(items as f64 / (part.len() as f64 * self.width))
    }

    /// Converts the buckets to slices for the result.
    pub fn slices(&self) -> Vec<TimeSlice> {
        let first = self.settings[0].1;
        let slices = self
            .buckets
            .iter()
            .enumerate()
            .map(|(index, bucket)| TimeSlice {
                at: Seconds::new((index + 1) as f64 * self.width),
                power: (bucket.covered > 0.0).then(|| Watts::new(bucket.energy / bucket.covered)),
                highest: bucket.highest.map(Watts::new),
                cap: Watts::new(bucket.cap),
                setting: bucket.setting.unwrap_or(first),
                items_per_s: bucket.items as f64 / self.width,
            });
        slices.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> HoldHistory {
        let setting = HoldSetting {
            batch: 4,
            core_clock: None,
            power_cap: None,
        };
        HoldHistory::new(Watts::new(150.0), setting)
    }

    #[test]
    fn long_runs_use_wider_buckets() {
        let mut history = history();
        for second in 0..4000_u32 {
            let to = Seconds::new(f64::from(second) + 0.5);
            let power = Watts::new(if second == 2000 { 300.0 } else { 100.0 });
            history.record_power(&PowerReading {
                from: to - Seconds::new(0.5),
                to,
                power,
            });
            history.record_batch(to, 10, Seconds::new(0.01), Seconds::new(0.01));
        }
        let slices = history.slices();
        assert!(slices.len() <= MAX_BUCKETS, "{}", slices.len());
        let items: f64 = slices.iter().map(|slice| slice.items_per_s).sum();
        let width = slices[0].at.get();
        assert!((items * width - 40_000.0).abs() < 1e-6);
        let highest = slices.iter().filter_map(|slice| slice.highest);
        assert_eq!(highest.map(Watts::get).fold(0.0, f64::max), 300.0);
        let rate = history.rate_between(Seconds::new(100.0), Seconds::new(1000.0));
        assert!((rate.unwrap() - 10.0).abs() < 0.1);
    }

    #[test]
    fn p99_latency_is_weighted_by_items() {
        let mut history = history();
        for index in 0..100_u32 {
            let slow = index == 50;
            let latency = Seconds::new(if slow { 0.5 } else { 0.01 });
            history.record_batch(Seconds::new(f64::from(index)), 1, Seconds::ZERO, latency);
        }
        assert_eq!(history.p99_since(Seconds::ZERO).unwrap().get() as f32, 0.01);
        history.record_batch(Seconds::new(100.0), 8, Seconds::new(0.5), Seconds::new(0.5));
        assert_eq!(history.p99_since(Seconds::ZERO).unwrap().get() as f32, 0.5);
        // The batch began before this time.
        assert_eq!(history.p99_since(Seconds::new(99.9)), None);
    }
}
