//! The profile of a workload: the work of one item, no outcome.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Bytes, Ratio, Seconds};

use super::form::{ConvAlgorithm, Dataset};
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
    /// Whether several GPUs share a batch; otherwise each takes a batch of its own.
    #[serde(default)]
    pub split_batch: bool,
    /// What the GPUs of a job exchange after each iteration.
    #[serde(default)]
    pub gradients: Bytes,
    /// The keys that were fitted to a study's figures for all GPUs together.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// Device memory that a batch takes.
    pub memory: MemoryNeed,
    /// How an iteration divides.
    #[serde(rename = "phase")]
    pub phases: Vec<PhaseShare>,
    /// The ways of doing its convolutions, the usual one first.
    #[serde(default, rename = "conv_algorithm")]
    pub conv_algorithms: Vec<ConvAlgorithm>,
    /// The data sets it was fed with, the usual one first.
    #[serde(default, rename = "dataset")]
    pub datasets: Vec<Dataset>,
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
    /// Its switching power, against that of the whole.
    #[serde(default = "whole")]
    pub switching: Ratio,
}

pub(super) fn whole() -> Ratio {
    Ratio::new(1.0)
}

/// The work of one item on one GPU at its default clocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct On {
    /// The GPU's profile.
    pub gpu: String,
    /// The keys that were fitted to a study's figures; the others are known or assumed.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// Items in a run, where the user does not say.
    pub items: u64,
    /// Before the first iteration, once a run.
    #[serde(default)]
    pub startup: Seconds,
    /// The host's work for one iteration, the GPU waiting.
    #[serde(default)]
    pub host_per_batch: Seconds,
    /// The host's work for one item, the GPU waiting.
    #[serde(default)]
    pub host: Seconds,
    /// The host's work to launch the kernels of an iteration, while they run.
    #[serde(default)]
    pub launch: Seconds,
    /// Work that follows the core clock.
    pub core: Seconds,
    /// Work that follows the memory clock.
    pub memory: Seconds,
    /// Work of an iteration that follows the memory clock, whatever the batch: weights are read and updated.
    #[serde(default)]
    pub memory_per_batch: Seconds,
    /// Switching power while kernels run, against the GPU's `power.core`.
    pub switching: Ratio,
    /// Memory power while kernels run, against the GPU's `power.memory`.
    pub memory_activity: Ratio,
}

const FITTABLE: [&str; 3] = ["half_speed_batch", "phase.share", "phase.switching"];

const FITTABLE_ON: [&str; 9] = [
    "startup",
    "host_per_batch",
    "host",
    "launch",
    "core",
    "memory",
    "memory_per_batch",
    "switching",
    "memory_activity",
];

/// Phases that the simulator adds.
const OWN_PHASES: [&str; 3] = ["host", "startup", "exchange"];

/// A billion items take years on any GPU.
const MOST_ITEMS: u64 = 1_000_000_000;

const DAY: Seconds = Seconds::new(86_400.0);

/// Nothing is so many times the usual.
const MOST_RATIO: Ratio = Ratio::new(100.0);

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
        check::within("gradients", self.gradients, Bytes::ZERO, most)?;
        self.check_phases()?;
        self.check_variants()?;
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
        let names = self.phases.iter().map(|phase| &phase.name);
        check_names("phase", &names.collect::<Vec<_>>())?;
        for (index, phase) in self.phases.iter().enumerate() {
            let key = |name| format!("phase.{index}.{name}");
            check::within(&key("core"), phase.core, Ratio::ZERO, Ratio::new(1.0))?;
            check::within(&key("memory"), phase.memory, Ratio::ZERO, Ratio::new(1.0))?;
            check::within(&key("switching"), phase.switching, Ratio::ZERO, MOST_RATIO)?;
            if OWN_PHASES.contains(&phase.name.as_str()) {
                let message = format!(
                    "`{}` is the simulator's own phase; choose another name",
                    phase.name
                );
                return Err(problem(key("name"), message));
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

impl WorkloadProfile {
    fn check_variants(&self) -> Result<(), Problem> {
        let algorithms = self.conv_algorithms.iter().map(|variant| &variant.name);
        check_names("conv_algorithm", &algorithms.collect::<Vec<_>>())?;
        for (index, variant) in self.conv_algorithms.iter().enumerate() {
            let key = |name| format!("conv_algorithm.{index}.{name}");
            let least = Ratio::new(0.01);
            check::within(&key("work"), variant.work, least, MOST_RATIO)?;
            check::within(&key("memory"), variant.memory, least, MOST_RATIO)?;
            check::within(&key("switching"), variant.switching, least, MOST_RATIO)?;
        }
        let datasets = self.datasets.iter().map(|dataset| &dataset.name);
        check_names("dataset", &datasets.collect::<Vec<_>>())?;
        for (index, dataset) in self.datasets.iter().enumerate() {
            let key = format!("dataset.{index}.host");
            check::within(&key, dataset.host, Seconds::ZERO, DAY)?;
        }
        Ok(())
    }
}

/// Each is a line of text and is there once.
fn check_names(table: &str, names: &[&String]) -> Result<(), Problem> {
    for (index, name) in names.iter().enumerate() {
        let key = format!("{table}.{index}.name");
        check::text(&key, name)?;
        if names[..index].contains(name) {
            return Err(problem(key, format!("`{name}` is there twice")));
        }
    }
    Ok(())
}

fn check_on(index: usize, on: &On) -> Result<(), Problem> {
    let key = |name| format!("on.{index}.{name}");
    check::names(&key("fitted"), &on.fitted, &FITTABLE_ON)?;
    check::count(&key("items"), on.items, MOST_ITEMS)?;
    for (name, time) in [
        ("startup", on.startup),
        ("host_per_batch", on.host_per_batch),
        ("host", on.host),
        ("launch", on.launch),
        ("core", on.core),
        ("memory", on.memory),
        ("memory_per_batch", on.memory_per_batch),
    ] {
        check::within(&key(name), time, Seconds::ZERO, DAY)?;
    }
    if on.core + on.memory <= Seconds::ZERO {
        let message = "core and memory are both nothing; a workload must use the GPU";
        return Err(problem(key("core"), message));
    }
    check::within(
        &key("switching"),
        on.switching,
        Ratio::ZERO,
        Ratio::new(3.0),
    )?;
    check::within(
        &key("memory_activity"),
        on.memory_activity,
        Ratio::ZERO,
        Ratio::new(2.0),
    )
}
