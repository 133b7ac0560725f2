//! What is kept of a hold while it goes on.

use std::collections::VecDeque;

use sweetspot_control::hold::{HoldSetting, PowerReading};
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_stats::weighted_p99;

use super::result::{Live, Slice};

/// So fine is what is shown over time, and ever coarser in long runs.
const FINEST: f64 = 0.25;
const MOST_SLICES: usize = 2400;
const RATE_OVER: f64 = 2.0;
const P99_OVER: f64 = 5.0;
const MEAN_OVER: f64 = 1.0;

#[derive(Clone, Copy, Default)]
struct Bucket {
    energy: f64,
    covered: f64,
    highest: Option<f64>,
    items: u64,
    cap: f64,
    setting: Option<HoldSetting>,
}

/// Sums by time, and the latest of everything.
pub struct Record {
    width: f64,
    buckets: Vec<Bucket>,
    pub settings: Vec<(Seconds, HoldSetting)>,
    pub caps: Vec<(Seconds, Watts)>,
    pub notes: Vec<(Seconds, String)>,
    recent_items: VecDeque<(f64, u64)>,
    recent_power: VecDeque<PowerReading>,
    /// End, latency, items of late.
    latencies: VecDeque<(f64, f64, u64)>,
    /// Begin of the batch, latency, items: of the whole run.
    pub all_latencies: Vec<(f32, f32, u32)>,
}

/// So many latencies are kept of a run; then every second one goes.
const MOST_LATENCIES: usize = 1 << 20;

impl Record {
    pub fn new(cap: Watts, setting: HoldSetting) -> Self {
        Self {
            width: FINEST,
            buckets: Vec::new(),
            settings: vec![(Seconds::ZERO, setting)],
            caps: vec![(Seconds::ZERO, cap)],
            notes: Vec::new(),
            recent_items: VecDeque::new(),
            recent_power: VecDeque::new(),
            latencies: VecDeque::new(),
            all_latencies: Vec::new(),
        }
    }

    pub fn cap(&self) -> Watts {
        self.caps.last().map_or(Watts::ZERO, |(_, cap)| *cap)
    }

    fn bucket(&mut self, at: f64) -> &mut Bucket {
        let mut place = (at.max(0.0) / self.width) as usize;
        while place >= MOST_SLICES {
            self.width *= 2.0;
            place /= 2;
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
        if place >= self.buckets.len() {
            let cap = self.cap().get();
            let setting = self.settings.last().map(|(_, setting)| *setting);
            let fresh = Bucket {
                cap,
                setting,
                ..Bucket::default()
            };
            self.buckets.resize(place + 1, fresh);
        }
        &mut self.buckets[place]
    }

    pub fn items(&mut self, at: Seconds, items: u64, duration: Seconds, latency: Seconds) {
        let at = at.get();
        let bucket = self.bucket(at);
        bucket.items = bucket.items.saturating_add(items);
        self.recent_items.push_back((at, items));
        self.latencies.push_back((at, latency.get(), items));
        if self.all_latencies.len() >= MOST_LATENCIES {
            let mut index = 0;
            self.all_latencies.retain(|_| {
                index += 1;
                index % 2 == 0
            });
        }
        let kept = (
            (at - duration.get()) as f32,
            latency.get() as f32,
            items.min(u32::MAX.into()) as u32,
        );
        self.all_latencies.push(kept);
    }

    pub fn power(&mut self, reading: &PowerReading) {
        let span = (reading.to - reading.from).get();
        let power = reading.power.get();
        let bucket = self.bucket(reading.to.get());
        bucket.energy += power * span;
        bucket.covered += span;
        bucket.highest = Some(bucket.highest.map_or(power, |high| high.max(power)));
        self.recent_power.push_back(*reading);
    }

    pub fn changed(&mut self, at: Seconds, setting: HoldSetting) {
        self.settings.push((at, setting));
        self.bucket(at.get()).setting = Some(setting);
    }

    pub fn capped(&mut self, at: Seconds, cap: Watts) {
        self.caps.push((at, cap));
        self.bucket(at.get()).cap = cap.get();
    }

    pub fn live(&mut self, now: Seconds) -> Live {
        let at = now.get();
        while (self.recent_items.front()).is_some_and(|(then, _)| at - then > RATE_OVER) {
            self.recent_items.pop_front();
        }
        while (self.latencies.front()).is_some_and(|(then, ..)| at - then > P99_OVER) {
            self.latencies.pop_front();
        }
        while (self.recent_power.front()).is_some_and(|one| at - one.to.get() > MEAN_OVER) {
            self.recent_power.pop_front();
        }
        let items: u64 = self.recent_items.iter().map(|(_, items)| items).sum();
        let latencies = self.latencies.iter();
        let latencies = latencies.map(|(_, latency, items)| (*latency, *items as f64));
        let (energy, covered) = self.recent_power.iter().fold((0.0, 0.0), |sum, one| {
            let span = (one.to - one.from).get();
            (sum.0 + one.power.get() * span, sum.1 + span)
        });
        Live {
            elapsed: now,
            power: (covered > 0.0).then(|| Watts::new(energy / covered)),
            cap: self.cap(),
            setting: self.settings[self.settings.len() - 1].1,
            items_per_s: (items > 0).then(|| items as f64 / RATE_OVER.min(at.max(0.1))),
            p99: weighted_p99(latencies.collect()).map(Seconds::new),
        }
    }

    /// 99 of 100 items whose batch began from this time on took no longer.
    pub fn p99_from(&self, from: Seconds) -> Option<Seconds> {
        let all = self.all_latencies.iter();
        let later = all.filter(|(at, ..)| f64::from(*at) >= from.get());
        let weighted = later.map(|(_, latency, items)| (f64::from(*latency), f64::from(*items)));
        weighted_p99(weighted.collect()).map(Seconds::new)
    }

    /// Items a second between two times, in whole slices.
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

    pub fn over_time(&self) -> Vec<Slice> {
        let first = self.settings[0].1;
        let slices = self
            .buckets
            .iter()
            .enumerate()
            .map(|(place, bucket)| Slice {
                at: Seconds::new((place + 1) as f64 * self.width),
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

    fn record() -> Record {
        let setting = HoldSetting {
            batch: 4,
            core_clock: None,
            power_cap: None,
        };
        Record::new(Watts::new(150.0), setting)
    }

    #[test]
    fn a_long_run_is_kept_in_as_few_parts() {
        let mut record = record();
        for second in 0..4000_u32 {
            let to = Seconds::new(f64::from(second) + 0.5);
            let power = Watts::new(if second == 2000 { 300.0 } else { 100.0 });
            record.power(&PowerReading {
                from: to - Seconds::new(0.5),
                to,
                power,
            });
            record.items(to, 10, Seconds::new(0.01), Seconds::new(0.01));
        }
        let slices = record.over_time();
        assert!(slices.len() <= MOST_SLICES, "{}", slices.len());
        let items: f64 = slices.iter().map(|slice| slice.items_per_s).sum();
        let width = slices[0].at.get();
        assert!((items * width - 40_000.0).abs() < 1e-6);
        let highest = slices.iter().filter_map(|slice| slice.highest);
        assert_eq!(highest.map(Watts::get).fold(0.0, f64::max), 300.0);
        let rate = record.rate_between(Seconds::new(100.0), Seconds::new(1000.0));
        assert!((rate.unwrap() - 10.0).abs() < 0.1);
    }

    #[test]
    fn the_99th_of_a_hundred_counts_items() {
        let mut record = record();
        for index in 0..100_u32 {
            let slow = index == 50;
            let latency = Seconds::new(if slow { 0.5 } else { 0.01 });
            record.items(Seconds::new(f64::from(index)), 1, Seconds::ZERO, latency);
        }
        assert_eq!(record.p99_from(Seconds::ZERO).unwrap().get() as f32, 0.01);
        record.items(Seconds::new(100.0), 8, Seconds::new(0.5), Seconds::new(0.5));
        assert_eq!(record.p99_from(Seconds::ZERO).unwrap().get() as f32, 0.5);
        // It began before.
        assert_eq!(record.p99_from(Seconds::new(99.9)), None);
    }
}
