//! The profile of a workload: the work of one item, no outcome.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Bytes, Ratio, Seconds};

use super::{Problem, Profile, check, problem};

/// Whether weights are learnt or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Forward, backward and update.
    Train,
    /// Forward alone.
    Infer,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Train => "training",
            Self::Infer => "inference",
        })
    }
}

/// A network as one study ran it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadProfile {
    /// The network's name.
    pub network: String,
    /// What is done with it.
    pub mode: Mode,
    /// Items in a batch, where the user does not say; the work below is that of an item in such a batch.
    pub batch: u64,
    /// The batch size at which the cores reach half their speed.
    pub half_speed_batch: f64,
    /// The keys of the work that were fitted to a study's figures; the others are known or assumed.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// Device memory that a batch takes.
    pub memory: MemoryNeed,
    /// How an iteration divides.
    #[serde(rename = "phase")]
    pub phases: Vec<PhaseShare>,
    /// The work, as it is on a certain GPU. On other GPUs it is scaled by their arithmetic units,
    /// clock and bandwidth, from the first entry.
    pub on: Vec<On>,
}

/// Device memory that a batch takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryNeed {
    /// Weights, gradients, optimiser, workspace.
    pub fixed: Bytes,
    /// Activations of one item.
    pub per_item: Bytes,
}

/// A phase of an iteration and its share of the work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseShare {
    /// `forward`, `backward`, `update`.
    pub name: String,
    /// Of the clock-bound work.
    pub core: Ratio,
    /// Of the memory-bound work.
    pub memory: Ratio,
}

/// The work of one item on one GPU at its default clocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct On {
    /// The GPU's profile.
    pub gpu: String,
    /// Items in a run, where the user does not say.
    pub items: u64,
    /// Before the first iteration, once a run.
    #[serde(default)]
    pub startup: Seconds,
    /// The host's work for one iteration, the GPU waiting.
    #[serde(default)]
    pub host_per_batch: Seconds,
    /// The host's work for one item, the GPU waiting.
    pub host: Seconds,
    /// Work that follows the core clock.
    pub core: Seconds,
    /// Work that follows the memory clock.
    pub memory: Seconds,
    /// Switching power while kernels run, against the GPU's `power.core`.
    pub switching: Ratio,
    /// Memory power while kernels run, against the GPU's `power.memory`.
    pub memory_activity: Ratio,
}

const FITTABLE: [&str; 7] = [
    "startup",
    "host_per_batch",
    "host",
    "core",
    "memory",
    "switching",
    "memory_activity",
];

/// A billion items take years on any GPU.
const MOST_ITEMS: u64 = 1_000_000_000;

/// Shares are written with a few digits.
const SHARES_OFF: f64 = 0.002;

impl Profile for WorkloadProfile {
    fn check(&self) -> Result<(), Problem> {
        check::text("network", &self.network)?;
        check::count("batch", self.batch, MOST_ITEMS)?;
        check::names("fitted", &self.fitted, &FITTABLE)?;
        if !(0.0..=1e6).contains(&self.half_speed_batch) {
            let message = format!(
                "{} is not possible; allowed are 0 to 1000000",
                self.half_speed_batch
            );
            return Err(problem("half_speed_batch", message));
        }
        let most = Bytes::new(1e15);
        check::within("memory.fixed", self.memory.fixed, Bytes::ZERO, most)?;
        check::within("memory.per_item", self.memory.per_item, Bytes::ZERO, most)?;
        self.check_phases()?;
        if self.on.is_empty() {
            return Err(problem("on", "at least one GPU's work is needed"));
        }
        for (index, on) in self.on.iter().enumerate() {
            if self.on[..index].iter().any(|other| other.gpu == on.gpu) {
                let message = format!("`{}` is there twice", on.gpu);
                return Err(problem(format!("on.{index}.gpu"), message));
            }
            check_on(index, on)?;
        }
        Ok(())
    }
}

impl WorkloadProfile {
    fn check_phases(&self) -> Result<(), Problem> {
        for (index, phase) in self.phases.iter().enumerate() {
            let key = |name| format!("phase.{index}.{name}");
            check::text(&key("name"), &phase.name)?;
            check::within(&key("core"), phase.core, Ratio::ZERO, Ratio::new(1.0))?;
            check::within(&key("memory"), phase.memory, Ratio::ZERO, Ratio::new(1.0))?;
            if phase.name == "host" || phase.name == "startup" {
                let message = format!(
                    "`{}` is the simulator's own phase; choose another name",
                    phase.name
                );
                return Err(problem(key("name"), message));
            }
            if self.phases[..index].iter().any(|p| p.name == phase.name) {
                return Err(problem(
                    key("name"),
                    format!("`{}` is there twice", phase.name),
                ));
            }
        }
        let sums = [
            (
                "core",
                self.phases.iter().map(|phase| phase.core).sum::<Ratio>(),
            ),
            (
                "memory",
                self.phases.iter().map(|phase| phase.memory).sum::<Ratio>(),
            ),
        ];
        for (name, sum) in sums {
            if (sum.get() - 1.0).abs() > SHARES_OFF {
                let message =
                    format!("the {name} shares of all phases add up to {sum:.1}, not 100 %");
                return Err(problem("phase", message));
            }
        }
        Ok(())
    }
}

fn check_on(index: usize, on: &On) -> Result<(), Problem> {
    let key = |name| format!("on.{index}.{name}");
    check::count(&key("items"), on.items, MOST_ITEMS)?;
    let day = Seconds::new(86_400.0);
    for (name, time) in [
        ("startup", on.startup),
        ("host_per_batch", on.host_per_batch),
        ("host", on.host),
        ("core", on.core),
        ("memory", on.memory),
    ] {
        check::within(&key(name), time, Seconds::ZERO, day)?;
    }
    if on.core + on.memory <= Seconds::ZERO {
        let message = "core and memory are both nothing; a workload must use the GPU";
        return Err(problem(key("core"), message));
    }
    check::within(
        &key("switching"),
        on.switching,
        Ratio::ZERO,
        Ratio::new(2.0),
    )?;
    check::within(
        &key("memory_activity"),
        on.memory_activity,
        Ratio::ZERO,
        Ratio::new(2.0),
    )
}
