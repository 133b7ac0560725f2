//! The profile of a workload: the work of one item. It contains no measured energies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Bytes, Ratio, Seconds};

use super::iteration::IterationWork;
use super::step_line::StepLine;
use super::variant::{ConvAlgorithm, Dataset};
use super::{Problem, Profile, check, problem};

/// Whether a workload is training or inference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Training: forward pass, backward pass and update of the weights.
    Train,
    /// Inference: forward pass only.
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

/// A network and its work per item, as measured in one study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadProfile {
    /// The name of the network, such as `resnet50`.
    pub network: String,
    /// Whether the workload is training or inference.
    pub mode: Mode,
    /// The default batch size. The work in `on` is that of an item in a batch of this size.
    pub batch: u64,
    /// The batch size at which the cores reach half their speed.
    pub half_speed_batch: f64,
    /// Whether several GPUs share a batch; otherwise each has its own batch.
    #[serde(default)]
    pub split_batch: bool,
    /// The amount of data that the GPUs of a job exchange after each iteration.
    #[serde(default)]
    pub gradients: Bytes,
    /// The keys whose values were fitted to a study's results, for all GPUs together.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// The device memory that a batch needs.
    pub memory: MemoryNeed,
    /// The phases of an iteration, in order.
    #[serde(rename = "phase")]
    pub phases: Vec<PhaseShare>,
    /// The convolution algorithms that can be chosen; the first is the default.
    #[serde(default, rename = "conv_algorithm")]
    pub conv_algorithms: Vec<ConvAlgorithm>,
    /// The data sets that can be chosen; the first is the default.
    #[serde(default, rename = "dataset")]
    pub datasets: Vec<Dataset>,
    /// The work of one item on each GPU for which it is known. For other GPUs, the first entry is scaled by
    /// arithmetic units, clock and bandwidth.
    pub on: Vec<ItemWork>,
}

/// The device memory that a batch needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryNeed {
    /// The memory for weights, gradients, optimiser and workspace, independent of the batch size.
    pub fixed: Bytes,
    /// The memory for the activations of one item.
    pub per_item: Bytes,
}

/// A phase of an iteration and its share of the work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseShare {
    /// The name of the phase, such as `forward`, `backward` or `update`.
    pub name: String,
    /// The phase's share of the iteration's work that is limited by the core clock.
    pub core: Ratio,
    /// The phase's share of the iteration's work that is limited by the memory clock.
    pub memory: Ratio,
    /// The switching power during the phase, relative to the mean of the iteration.
    #[serde(default = "one")]
    pub switching: Ratio,
}

/// The default value of a factor in a profile, which is 1.
pub(super) fn one() -> Ratio {
    Ratio::new(1.0)
}

/// The work of one item on one GPU at its default clocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemWork {
    /// The name of the GPU's profile.
    pub gpu: String,
    /// The keys whose values were fitted to a study's results; the other values are known or assumed.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// The default number of items in a run.
    pub items: u64,
    /// The time before the first iteration, once per run.
    #[serde(default)]
    pub startup: Seconds,
    /// The host's time per iteration, in which the GPU waits; it does not depend on the batch size.
    #[serde(default)]
    pub host_per_batch: Seconds,
    /// The host's time per item, in which the GPU waits.
    #[serde(default)]
    pub host: Seconds,
    /// The host's time to launch the kernels of an iteration; it overlaps with their execution.
    #[serde(default)]
    pub launch: Seconds,
    /// The part of an item's time that scales with the core clock.
    pub core: Seconds,
    /// The part of an item's time that scales with the memory clock.
    pub memory: Seconds,
    /// The time per iteration in which weights are read and updated: it scales with the memory clock and does
    /// not depend on the batch size.
    #[serde(default)]
    pub memory_per_batch: Seconds,
    /// The switching power while kernels run, relative to the GPU's `power.core`.
    pub switching: Ratio,
    /// The memory power while kernels run, relative to the GPU's `power.memory`.
    pub memory_activity: Ratio,
    /// The work of an iteration at several batch sizes, in ascending order, if it does not follow from that of an item:
    /// these replace the values above for the device, except in estimates of a run's length.
    #[serde(default, rename = "iteration", skip_serializing_if = "Vec::is_empty")]
    pub iterations: Vec<IterationWork>,
    /// The work of some phases as lines, by the name of the phase. Other phases have their share of the item's work.
    #[serde(default, rename = "step", skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<String, StepLine>,
}

/// The keys that the list `fitted` of a workload may contain, for all GPUs together.
const FITTABLE: [&str; 3] = ["half_speed_batch", "phase.share", "phase.switching"];

/// The keys that the list `fitted` in an entry of `on` may contain, for one GPU.
const FITTABLE_ON: [&str; 16] = [
    "startup",
    "host_per_batch",
    "host",
    "launch",
    "core",
    "memory",
    "memory_per_batch",
    "switching",
    "memory_activity",
    "step.forward.constant",
    "step.forward.per_item",
    "step.forward.switching",
    "step.forward.half_power_batch",
    "step.backward.constant",
    "step.backward.per_item",
    "step.backward.switching",
];

/// The phases that the simulator adds; a profile must not use their names.
const RESERVED_PHASES: [&str; 4] = ["host", "startup", "wait", "exchange"];

/// The maximum number of items in a run; more would take years on any GPU.
pub(super) const MAX_ITEMS: u64 = 1_000_000_000;

/// The length of a day: the longest time that a profile may contain.
pub(super) const DAY: Seconds = Seconds::new(86_400.0);

/// The highest factor that a profile may contain.
pub(super) const MAX_RATIO: Ratio = Ratio::new(100.0);

/// The sum of all phases' shares may differ from 1 by this much, because shares are written with few digits.
const SHARE_TOLERANCE: f64 = 0.002;

impl Profile for WorkloadProfile {
    fn check(&self) -> Result<(), Problem> {
        check::text("network", &self.network)?;
        check::count("batch", self.batch, MAX_ITEMS)?;
        check::names("fitted", &self.fitted, &FITTABLE)?;
        if !(0.0..=1e6).contains(&self.half_speed_batch) {
            let message = format!(
                "{} is out of range: give a value from 0 to 1000000",
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
            return Err(problem(
                "on",
                "the profile must give the work of an item on at least one GPU",
            ));
        }
        for (index, on) in self.on.iter().enumerate() {
            if self.on[..index].iter().any(|other| other.gpu == on.gpu) {
                let message = format!("`{}` is given twice", on.gpu);
                return Err(problem(format!("on.{index}.gpu"), message));
            }
            check_item_work(index, on)?;
            on.check_iterations(&format!("on.{index}"), self.phases.len())?;
            for (name, line) in &on.steps {
                let key = format!("on.{index}.step.{name}");
                if !self.phases.iter().any(|phase| phase.name == *name) {
                    return Err(problem(key, "there is no phase with this name"));
                }
                line.check(&key)?;
            }
        }
        Ok(())
    }
}

impl WorkloadProfile {
    /// Checks the names and shares of the phases.
    fn check_phases(&self) -> Result<(), Problem> {
        let names = self.phases.iter().map(|phase| &phase.name);
        check_names("phase", &names.collect::<Vec<_>>())?;
        for (index, phase) in self.phases.iter().enumerate() {
            let key = |name| format!("phase.{index}.{name}");
            check::within(&key("core"), phase.core, Ratio::ZERO, Ratio::new(1.0))?;
            check::within(&key("memory"), phase.memory, Ratio::ZERO, Ratio::new(1.0))?;
            check::within(&key("switching"), phase.switching, Ratio::ZERO, MAX_RATIO)?;
            if RESERVED_PHASES.contains(&phase.name.as_str()) {
                let message = format!(
                    "`{}` is the name of a phase that the simulator adds; choose another name",
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
            if (sum.get() - 1.0).abs() > SHARE_TOLERANCE {
                let message =
                    format!("the {name} shares of all phases add up to {sum:.1}, not 100 %");
                return Err(problem("phase", message));
            }
        }
        Ok(())
    }
}

impl WorkloadProfile {
    /// Checks the convolution algorithms and data sets.
    fn check_variants(&self) -> Result<(), Problem> {
        let algorithms = self.conv_algorithms.iter().map(|variant| &variant.name);
        check_names("conv_algorithm", &algorithms.collect::<Vec<_>>())?;
        for (index, variant) in self.conv_algorithms.iter().enumerate() {
            let key = |name| format!("conv_algorithm.{index}.{name}");
            let least = Ratio::new(0.01);
            check::within(&key("work"), variant.work, least, MAX_RATIO)?;
            check::within(&key("memory"), variant.memory, least, MAX_RATIO)?;
            check::within(&key("switching"), variant.switching, least, MAX_RATIO)?;
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

/// Checks that each name is a line of text and is given once.
fn check_names(table: &str, names: &[&String]) -> Result<(), Problem> {
    for (index, name) in names.iter().enumerate() {
        let key = format!("{table}.{index}.name");
        check::text(&key, name)?;
        if names[..index].contains(name) {
            return Err(problem(key, format!("`{name}` is given twice")));
        }
    }
    Ok(())
}

/// Checks the values of the work of an item on one GPU.
fn check_item_work(index: usize, on: &ItemWork) -> Result<(), Problem> {
    let key = |name| format!("on.{index}.{name}");
    check::names(&key("fitted"), &on.fitted, &FITTABLE_ON)?;
    check::count(&key("items"), on.items, MAX_ITEMS)?;
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
        let message = "core and memory are both zero; a workload must use the GPU";
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
