//! Fixed combinations of batch size and device setting on a simulated GPU, each measured once.

use std::collections::HashMap;

use anyhow::Result;
use sweetspot_control::hold::{DeviceKnob, HoldConfig, HoldMode, fine_batches};
use sweetspot_quantity::{Megahertz, Seconds, Watts};
use sweetspot_sim::GpuProfile;
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::{Conditions, HoldOutcome};

/// The length of a hold, and of the run of a fixed combination with which it is compared. In a shorter run the GPU stays
/// cooler and draws less power: a Tesla P100 keeps a cap for a minute with batch sizes that exceed it later.
pub const HOLD_TIME: Seconds = Seconds::new(300.0);
/// The length of the run in which every combination is measured; only the fastest of them are run as long as a hold.
const FIRST_TIME: Seconds = Seconds::new(60.0);
/// Combinations are compared over [`HOLD_TIME`] if their rate over [`FIRST_TIME`] is at least this share of the best one.
/// A GPU that becomes warmer changes a rate by less than this.
const COMPARED_SHARE: f64 = 0.985;
/// The caps of the device that are tried, as shares of the cap.
const CAP_SHARES: [f64; 6] = [1.0, 0.9975, 0.995, 0.99, 0.98, 0.95];
/// The number of core clocks between the lowest and the highest; the upper two thirds are tried.
const CLOCKS: usize = 12;
/// A power that no simulated GPU draws.
const NO_CAP: Watts = Watts::new(4000.0);
/// The largest share of the time above the cap.
pub const MAX_EXCESS: f64 = 0.01;

/// What a fixed combination sets on the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setting {
    /// The device stays as it is.
    Nothing,
    /// The device has this power cap.
    Cap(Watts),
    /// The device has this core clock.
    Clock(Megahertz),
}

/// A fixed combination of batch size and device setting, with its results.
#[derive(Clone, Copy, Debug)]
pub struct Combination {
    pub setting: Setting,
    pub batch: u64,
    /// Items per second.
    pub rate: f64,
    /// The 99th percentile of the latency; absent if no batch was completed.
    p99: Option<Seconds>,
    /// The highest mean power of a second.
    largest_mean: Watts,
    /// The share of the time above the cap for which the combination was run.
    excess: f64,
}

impl Combination {
    fn is_within(&self, bound: Option<Seconds>) -> bool {
        bound.is_none_or(|bound| self.p99.is_some_and(|p99| p99 <= bound))
    }
}

/// All fixed combinations of a network on a GPU. What does not depend on the cap is run once for all caps.
pub struct FixedCombinations<'a> {
    server: &'a SimulatedServer,
    profile: &'a GpuProfile,
    seed: u64,
    uncapped: Vec<Combination>,
    clocks: Vec<Combination>,
}

/// The fixed combinations below one cap, and the long runs of the fastest.
pub struct BelowCap<'a> {
    all: &'a FixedCombinations<'a>,
    cap: Watts,
    /// All combinations, the fastest first.
    by_rate: Vec<Combination>,
    /// The long runs so far, by the index in `by_rate`.
    long: HashMap<usize, Combination>,
}

impl<'a> FixedCombinations<'a> {
    /// Runs all combinations that do not depend on a cap.
    pub fn new(server: &'a SimulatedServer, profile: &'a GpuProfile, seed: u64) -> Result<Self> {
        let mut all = Self {
            server,
            profile,
            seed,
            uncapped: Vec::new(),
            clocks: Vec::new(),
        };
        all.uncapped = all.run_all_sizes(Setting::Nothing, NO_CAP)?;
        let (low, high) = (profile.core.min.get(), profile.core.max.get());
        for number in CLOCKS / 3..CLOCKS {
            let clock = low + (high - low) * number as f64 / (CLOCKS - 1) as f64;
            let clock = Setting::Clock(Megahertz::new(clock));
            all.clocks.extend(all.run_all_sizes(clock, NO_CAP)?);
        }
        Ok(all)
    }

    /// The combinations below a cap, with those that set the device only if the user may.
    pub fn below(&'a self, cap: Watts, may_set: bool) -> Result<BelowCap<'a>> {
        let mut by_rate = self.uncapped.clone();
        if may_set {
            by_rate.extend(&self.clocks);
            let caps = CAP_SHARES.map(|share| cap * share);
            for device_cap in caps.into_iter().filter(|cap| *cap >= self.profile.cap.min) {
                by_rate.extend(self.run_all_sizes(Setting::Cap(device_cap), cap)?);
            }
        }
        by_rate.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        Ok(BelowCap {
            all: self,
            cap,
            by_rate,
            long: HashMap::new(),
        })
    }

    /// Runs one combination for [`FIRST_TIME`] and returns the 99th percentile of its latency.
    pub fn latency_of(&self, setting: Setting, batch: u64) -> Result<Option<Seconds>> {
        Ok(self.run(setting, batch, NO_CAP, FIRST_TIME)?.p99)
    }

    fn run_all_sizes(&self, setting: Setting, cap: Watts) -> Result<Vec<Combination>> {
        let sizes = fine_batches(256).into_iter();
        sizes
            .map(|size| self.run(setting, size, cap, FIRST_TIME))
            .collect()
    }

    fn run(&self, setting: Setting, batch: u64, cap: Watts, time: Seconds) -> Result<Combination> {
        let (mode, knob) = match setting {
            Setting::Nothing => (HoldMode::Robust, DeviceKnob::None),
            Setting::Cap(cap) => (HoldMode::Joint, DeviceKnob::PowerCap(vec![cap])),
            Setting::Clock(clock) => (HoldMode::Joint, DeviceKnob::CoreClock(vec![clock])),
        };
        let config = HoldConfig::new(mode, cap, vec![batch], knob);
        let fixed = self
            .server
            .hold(config, &Conditions::steady(time, self.seed))?;
        let summary = &fixed.summary;
        Ok(Combination {
            setting,
            batch,
            rate: settled_rate(&fixed),
            p99: fixed.latency_p99(time / 4.0),
            largest_mean: summary.largest_mean.unwrap_or(Watts::ZERO),
            excess: excess_share(&fixed),
        })
    }
}

impl BelowCap<'_> {
    /// The fastest combination that keeps the cap and the latency bound for as long as a hold lasts; `None` if none does.
    pub fn best(&mut self, bound: Option<Seconds>) -> Result<Option<Combination>> {
        let mut best: Option<Combination> = None;
        let mut lowest_rate = 0.0;
        for index in 0..self.by_rate.len() {
            let first = self.by_rate[index];
            if first.rate < lowest_rate {
                break;
            }
            if !first.is_within(bound) || !self.keeps_cap(&first)? {
                continue;
            }
            let long = self.long_run(index)?;
            if !long.is_within(bound) || long.excess >= MAX_EXCESS {
                continue;
            }
            lowest_rate = f64::max(lowest_rate, COMPARED_SHARE * first.rate);
            if best.is_none_or(|best| long.rate > best.rate) {
                best = Some(long);
            }
        }
        Ok(best)
    }

    /// Whether a combination keeps the cap in a run of [`FIRST_TIME`].
    fn keeps_cap(&self, first: &Combination) -> Result<bool> {
        if first.largest_mean <= self.cap {
            return Ok(true);
        }
        let excess = match first.setting {
            Setting::Cap(_) => first.excess,
            // It was run without a cap.
            setting => {
                let again = self.all.run(setting, first.batch, self.cap, FIRST_TIME)?;
                again.excess
            }
        };
        Ok(excess < MAX_EXCESS)
    }

    /// The run of a combination that lasts as long as a hold.
    fn long_run(&mut self, index: usize) -> Result<Combination> {
        if let Some(long) = self.long.get(&index) {
            return Ok(*long);
        }
        let Combination { setting, batch, .. } = self.by_rate[index];
        let long = self.all.run(setting, batch, self.cap, HOLD_TIME)?;
        self.long.insert(index, long);
        Ok(long)
    }
}

/// The share of the time after settling in which the mean power was above the cap.
pub fn excess_share(held: &HoldOutcome) -> f64 {
    held.summary
        .violation_share
        .map_or(0.0, |share| share.get())
}

/// The items per second after the setting has settled, from the end of one batch to the end of another; 0 with fewer
/// than two batches. The first batch after settling began before it.
pub fn settled_rate(held: &HoldOutcome) -> f64 {
    let from = held.summary.settle_time.unwrap_or(held.summary.time / 2.0);
    let mut after = held.latencies.iter().filter(|(at, ..)| *at > from);
    let (Some((begun, ..)), Some((end, ..))) = (after.next(), held.latencies.last()) else {
        return 0.0;
    };
    let items: u64 = after.map(|(_, _, items)| items).sum();
    match end > begun {
        true => items as f64 / (*end - *begun).get(),
        false => 0.0,
    }
}
