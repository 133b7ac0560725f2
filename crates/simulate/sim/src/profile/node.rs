//! The profile of a node: its host, power supply, interconnect and wall meter.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Bytes, BytesPerSecond, Ratio, Seconds, Watts};

use crate::job::GradientExchange;

use super::processors::{PackageLoad, Processors};
use super::{Problem, Profile, check, problem};

/// A node: a computer with GPUs, its power supply and the power meter at its wall socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeProfile {
    /// A short description of the node.
    pub name: String,
    /// The GPUs that the node was studied with: `NAME:N,...`.
    pub gpus: String,
    /// The keys whose values were fitted to a study's results; the other values are known or assumed.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// The power of everything except the GPUs.
    pub host: HostPower,
    /// The power supply and its losses.
    pub supply: Supply,
    /// The parameters of the exchange of gradients between the GPUs of a job.
    pub all_reduce: AllReduce,
    /// The power meter at the wall socket.
    pub meter: Meter,
    /// The processors; `None` if nothing is known about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<Processors>,
}

/// What a node's power depends on at a moment.
#[derive(Clone, Copy, Debug)]
pub struct NodeLoad<'a> {
    /// The power of all GPUs together.
    pub gpus: Watts,
    /// The sum of the GPUs' default power caps.
    pub most: Watts,
    /// Whether a job uses each GPU.
    pub in_use: &'a [bool],
    /// The power cap of each processor package; packages without one have their default cap.
    pub package_caps: &'a [Watts],
}

/// The power of a node at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePower {
    /// The power at the wall socket.
    pub wall: Watts,
    /// The load of each processor package; empty if nothing is known about the processors.
    pub packages: Vec<PackageLoad>,
}

/// The power of processors, memory, disks and fans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPower {
    /// The power of the host while no job runs.
    pub idle: Watts,
    /// The power that the host adds for each GPU that a job uses.
    pub per_gpu: Watts,
    /// The power of the fans while every GPU draws its default cap. At other loads it is proportional to the cube of
    /// the GPUs' power.
    #[serde(default)]
    pub fans: Watts,
}

/// The power supplies, modelled as a single supply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Supply {
    /// The maximum output power.
    pub capacity: Watts,
    /// The efficiency at 10, 20, 50 and 100 % of the capacity; values between these are interpolated
    /// linearly.
    pub efficiency: [Ratio; 4],
}

/// The parameters of a ring all-reduce, with which GPUs exchange gradients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllReduce {
    /// The bandwidth of each link, in one direction.
    pub bandwidth: BytesPerSecond,
    /// The bandwidth of the slowest link of a ring with GPUs of different models, which cannot access each other's
    /// memory directly and send through the host's memory; as `bandwidth` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlike_bandwidth: Option<BytesPerSecond>,
    /// The latency of each step of the ring.
    pub latency: Seconds,
    /// The largest share of the exchange that can run during the backward pass. No more than the time of the backward
    /// pass is hidden.
    pub overlap: Ratio,
    /// The switching and memory power of a GPU that waits for others, relative to its power while it
    /// computes.
    #[serde(default)]
    pub activity: Ratio,
    /// The number of GPUs whose transfers share the bandwidth of one link, such as the uplink of a PCI Express switch.
    #[serde(default = "one")]
    pub gpus_per_link: u64,
}

/// Each GPU has its own link.
const fn one() -> u64 {
    1
}

impl AllReduce {
    /// The exchange of data between GPUs of these models in an iteration.
    pub fn exchange_between<T: PartialEq>(&self, models: &[T], data: Bytes) -> GradientExchange {
        let are_alike = models.windows(2).all(|pair| pair[0] == pair[1]);
        match self.unlike_bandwidth.filter(|_| !are_alike) {
            Some(bandwidth) => Self {
                bandwidth,
                ..self.clone()
            }
            .exchange(models.len(), data),
            None => self.exchange(models.len(), data),
        }
    }

    /// The exchange of data between n like GPUs in an iteration: 2 (n - 1) steps, in each of which every GPU sends 1/n of the
    /// data to the next. The GPUs that share a link send one after another.
    pub fn exchange(&self, gpus: usize, data: Bytes) -> GradientExchange {
        if gpus < 2 || data <= Bytes::ZERO {
            return GradientExchange::default();
        }
        let steps = 2.0 * (gpus - 1) as f64;
        let on_a_link = self.gpus_per_link.clamp(1, gpus as u64) as f64;
        let step = data / gpus as f64 * on_a_link / self.bandwidth + self.latency;
        GradientExchange {
            time: step * steps,
            overlap: self.overlap,
            activity: self.activity,
        }
    }
}

/// The power meter at the wall socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meter {
    /// The time between two readings of the meter.
    pub period: Seconds,
    /// The maximum relative error of a reading; the error is constant during a run.
    pub accuracy: Ratio,
}

/// The loads of the power supply for which its efficiency is given, as shares of its capacity.
const LOADS: [f64; 4] = [0.1, 0.2, 0.5, 1.0];

/// The keys that the list `fitted` of a node profile may contain.
const FITTABLE: [&str; 9] = [
    "host.idle",
    "host.per_gpu",
    "host.fans",
    "supply.efficiency",
    "all_reduce.bandwidth",
    "all_reduce.unlike_bandwidth",
    "all_reduce.latency",
    "all_reduce.overlap",
    "all_reduce.activity",
];

impl NodeProfile {
    /// The power of the node at the wall socket and of its processors. Fans follow the cube of the GPUs' power. A cap of
    /// a package lowers the power of the whole host by what the package saves.
    pub fn power(&self, load: &NodeLoad<'_>) -> NodePower {
        let heat = (load.gpus / load.most).get();
        let fans = self.host.fans * (heat * heat * heat);
        let in_use = load.in_use.iter().filter(|used| **used).count();
        let uncapped = load.gpus + fans + self.host.idle + self.host.per_gpu * in_use as f64;
        let (packages, saved) = self.package_loads(load);
        let inside = uncapped - saved;
        NodePower {
            wall: inside / self.supply.efficiency_at(inside).get(),
            packages,
        }
    }

    /// The load of each package, and the power that their caps save together.
    fn package_loads(&self, load: &NodeLoad<'_>) -> (Vec<PackageLoad>, Watts) {
        let Some(processors) = &self.processors else {
            return (Vec::new(), Watts::ZERO);
        };
        let gpus = load.in_use.len();
        let mut saved = Watts::ZERO;
        let packages = (0..processors.packages as usize).map(|package| {
            let fed = load
                .in_use
                .iter()
                .enumerate()
                .filter(|(gpu, used)| **used && processors.package_of(*gpu, gpus) == package);
            let work = self.host.per_gpu * fed.count() as f64;
            let cap = load.package_caps.get(package);
            let package = processors.under_cap(work, *cap.unwrap_or(&processors.cap));
            saved += processors.idle + work - package.power;
            package
        });
        (packages.collect(), saved)
    }
}

impl Supply {
    /// The efficiency of the power supply at this output power.
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
        if let Some(unlike) = reduce.unlike_bandwidth {
            check::within("all_reduce.unlike_bandwidth", unlike, slow, fast)?;
        }
        let second = Seconds::new(1.0);
        check::within("all_reduce.latency", reduce.latency, Seconds::ZERO, second)?;
        let all = Ratio::new(1.0);
        check::within("all_reduce.overlap", reduce.overlap, Ratio::ZERO, all)?;
        check::within("all_reduce.activity", reduce.activity, Ratio::ZERO, all)?;
        if reduce.gpus_per_link == 0 {
            let message = "at least one GPU uses a link: give 1 if each GPU has its own";
            return Err(problem("all_reduce.gpus_per_link", message));
        }
        check::within("host.fans", self.host.fans, none, most)?;
        if let Some(processors) = &self.processors {
            processors.check(self.host.idle)?;
        }
        if self.meter.period <= Seconds::ZERO {
            let message = "the time between two readings must be more than zero";
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(gpus_per_link: u64) -> AllReduce {
        AllReduce {
            bandwidth: BytesPerSecond::new(10e9),
            unlike_bandwidth: None,
            latency: Seconds::new(0.001),
            overlap: Ratio::new(0.25),
            activity: Ratio::ZERO,
            gpus_per_link,
        }
    }

    /// 2 (n - 1) / n of the data at the bandwidth, and 2 (n - 1) latencies.
    #[test]
    fn a_ring_takes_time_for_data_and_steps() {
        let time = |gpus| ring(1).exchange(gpus, Bytes::new(1e9)).time.get();
        assert!((time(2) - 0.102).abs() < 1e-12);
        assert!((time(8) - 0.189).abs() < 1e-12);
        assert_eq!(ring(1).exchange(1, Bytes::new(1e9)).time, Seconds::ZERO);
        assert_eq!(ring(1).exchange(8, Bytes::ZERO).time, Seconds::ZERO);
    }

    #[test]
    fn unlike_gpus_use_their_own_bandwidth() {
        let ring = AllReduce {
            unlike_bandwidth: Some(BytesPerSecond::new(5e9)),
            ..ring(1)
        };
        let time = |models: &[&str]| ring.exchange_between(models, Bytes::new(1e9)).time.get();
        assert!((time(&["a", "a"]) - 0.102).abs() < 1e-12);
        assert!((time(&["a", "b"]) - 0.202).abs() < 1e-12);
    }

    /// A link that is shared by 8 GPUs carries the data of those that take part.
    #[test]
    fn gpus_that_share_a_link_send_one_after_another() {
        let time = |gpus| ring(8).exchange(gpus, Bytes::new(1e9)).time.get();
        assert!((time(2) - 0.202).abs() < 1e-12);
        assert!((time(8) - 1.414).abs() < 1e-12);
    }

    #[test]
    fn a_backward_pass_hides_a_share_of_the_exchange_but_not_more_than_its_time() {
        let exchange = ring(1).exchange(2, Bytes::new(1e9));
        let exposed = |backward: f64| exchange.exposed_after(Seconds::new(backward)).get();
        assert!((exposed(1.0) - 0.75 * 0.102).abs() < 1e-12);
        assert!((exposed(0.01) - 0.092).abs() < 1e-12);
        assert!((exposed(0.0) - 0.102).abs() < 1e-12);
    }
}
