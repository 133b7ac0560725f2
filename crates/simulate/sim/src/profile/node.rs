//! The profile of a node: what stands around its GPUs.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Bytes, BytesPerSecond, Ratio, Seconds, Watts};

use crate::job::Exchange;

use super::{Problem, Profile, check, problem};

/// A node and its wall meter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeProfile {
    /// In words.
    pub name: String,
    /// The GPUs it was studied with: `NAME:N,...`.
    pub gpus: String,
    /// The keys that were fitted to a study's figures; the others are known or assumed.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// What all but the GPUs draw.
    pub host: HostPower,
    /// What is lost on the way from the wall.
    pub supply: Supply,
    /// How the GPUs of a job exchange gradients.
    pub all_reduce: AllReduce,
    /// What is measured at the wall.
    pub meter: Meter,
}

/// Processors, memory, disks and fans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPower {
    /// With no job.
    pub idle: Watts,
    /// More for each GPU that a job uses: its process.
    pub per_gpu: Watts,
    /// Its fans, while every GPU draws as much as its default cap allows; they go with the third power of
    /// what the GPUs draw.
    #[serde(default)]
    pub fans: Watts,
}

/// The power supplies, as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Supply {
    /// The most they give.
    pub capacity: Watts,
    /// Efficiency at a tenth, a fifth, a half and the whole of the capacity; straight lines between.
    pub efficiency: [Ratio; 4],
}

/// A ring all-reduce.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllReduce {
    /// Of each link of the ring.
    pub bandwidth: BytesPerSecond,
    /// Of each of the ring's steps.
    pub latency: Seconds,
    /// The part that is hidden behind the backward pass.
    pub overlap: Ratio,
    /// Power of a GPU that waits for it, against its power at work.
    #[serde(default)]
    pub activity: Ratio,
}

impl AllReduce {
    /// What an exchange between so many GPUs adds to an iteration: 2 (n - 1) steps, each with an n-th of
    /// the data.
    pub fn exchange(&self, gpus: usize, data: Bytes) -> Exchange {
        if gpus < 2 || data <= Bytes::ZERO {
            return Exchange::default();
        }
        let steps = 2.0 * (gpus - 1) as f64;
        let step = data / gpus as f64 / self.bandwidth + self.latency;
        Exchange {
            time: step * (steps * (1.0 - self.overlap.get())),
            activity: self.activity,
        }
    }
}

/// A meter at the wall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meter {
    /// Between two readings.
    pub period: Seconds,
    /// The most that a reading is off, the same way throughout a run.
    pub accuracy: Ratio,
}

/// The loads at which the efficiency is given.
const LOADS: [f64; 4] = [0.1, 0.2, 0.5, 1.0];

const FITTABLE: [&str; 8] = [
    "host.idle",
    "host.per_gpu",
    "host.fans",
    "supply.efficiency",
    "all_reduce.bandwidth",
    "all_reduce.latency",
    "all_reduce.overlap",
    "all_reduce.activity",
];

impl NodeProfile {
    /// What is drawn from the wall while the GPUs draw `gpus` of at most `most`, and a job uses `in_use` of
    /// them.
    pub fn at_the_wall(&self, gpus: Watts, most: Watts, in_use: usize) -> Watts {
        let heat = (gpus / most).get();
        let fans = self.host.fans * (heat * heat * heat);
        let inside = gpus + fans + self.host.idle + self.host.per_gpu * in_use as f64;
        inside / self.supply.efficiency_at(inside).get()
    }
}

impl Supply {
    fn efficiency_at(&self, inside: Watts) -> Ratio {
        let load = (inside / self.capacity).get();
        let upper = LOADS.iter().position(|at| load <= *at).unwrap_or(3).max(1);
        let (low, high) = (LOADS[upper - 1], LOADS[upper]);
        let between = ((load - low) / (high - low)).clamp(0.0, 1.0);
        let (a, b) = (self.efficiency[upper - 1], self.efficiency[upper]);
        Ratio::new(a.get() + (b - a).get() * between)
    }
}

impl Profile for NodeProfile {
    fn check(&self) -> Result<(), Problem> {
        let (none, most) = (Watts::ZERO, Watts::new(100_000.0));
        check::text("name", &self.name)?;
        check::text("gpus", &self.gpus)?;
        check::names("fitted", &self.fitted, &FITTABLE)?;
        check::within("host.idle", self.host.idle, none, most)?;
        check::within("host.per_gpu", self.host.per_gpu, none, most)?;
        check::within(
            "supply.capacity",
            self.supply.capacity,
            Watts::new(1.0),
            most,
        )?;
        for efficiency in self.supply.efficiency {
            let (poor, perfect) = (Ratio::new(0.3), Ratio::new(1.0));
            check::within("supply.efficiency", efficiency, poor, perfect)?;
        }
        let reduce = &self.all_reduce;
        let (slow, fast) = (BytesPerSecond::new(1e3), BytesPerSecond::new(1e15));
        check::within("all_reduce.bandwidth", reduce.bandwidth, slow, fast)?;
        let second = Seconds::new(1.0);
        check::within("all_reduce.latency", reduce.latency, Seconds::ZERO, second)?;
        let all = Ratio::new(1.0);
        check::within("all_reduce.overlap", reduce.overlap, Ratio::ZERO, all)?;
        check::within("all_reduce.activity", reduce.activity, Ratio::ZERO, all)?;
        check::within("host.fans", self.host.fans, none, most)?;
        if self.meter.period <= Seconds::ZERO {
            let message = "a meter needs some time between two readings";
            return Err(problem("meter.period", message));
        }
        check::within(
            "meter.accuracy",
            self.meter.accuracy,
            Ratio::ZERO,
            Ratio::new(0.2),
        )
    }
}
