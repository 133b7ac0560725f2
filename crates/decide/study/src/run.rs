//! What one run came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, Shortfall};
use sweetspot_quantity::{Joules, Seconds, Watts};

use crate::Task;

/// Whose energy counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnergyOf {
    /// The devices that the job uses.
    #[default]
    JobGpus,
    /// All devices of the node, those that idle too.
    AllGpus,
    /// The whole node at the wall.
    Node,
}

impl EnergyOf {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::JobGpus, Self::AllGpus, Self::Node];
}

impl std::fmt::Display for EnergyOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::JobGpus => "job-gpus",
            Self::AllGpus => "all-gpus",
            Self::Node => "node",
        })
    }
}

impl std::str::FromStr for EnergyOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|of| of.to_string() == text)
            .ok_or_else(|| format!("`{text}` is not one of job-gpus, all-gpus, node"))
    }
}

/// An amount of energy, and how far off it may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// How much.
    pub value: Joules,
    /// It lies in here in 95 of 100 cases, where that is known.
    pub interval95: Option<(Joules, Joules)>,
}

impl Energy {
    /// A value that is what it is.
    pub const fn exact(value: Joules) -> Self {
        Self {
            value,
            interval95: None,
        }
    }
}

/// Energy kept apart by whose it is; what is not known is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Energies {
    /// Of the devices that the job uses.
    pub job_gpus: Option<Energy>,
    /// Of all devices of the node.
    pub all_gpus: Option<Energy>,
    /// Of the whole node at the wall.
    pub node: Option<Energy>,
}

impl Energies {
    /// Whose.
    pub fn of(&self, of: EnergyOf) -> Option<Energy> {
        match of {
            EnergyOf::JobGpus => self.job_gpus,
            EnergyOf::AllGpus => self.all_gpus,
            EnergyOf::Node => self.node,
        }
    }
}

/// One device in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceEnergy {
    /// Which.
    pub device: DeviceId,
    /// Whether the job used it.
    pub in_job: bool,
    /// Nothing where it is not known.
    pub energy: Option<Energy>,
    /// How it was come to: `counter`, `simulator`.
    pub method: String,
}

/// Time and energy of one phase in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Its name.
    pub name: String,
    /// Spent in it.
    pub time: Seconds,
    /// Drawn in it by the devices of the job.
    pub energy: Joules,
}

/// A run that ended well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Of the window that counts.
    pub time: Seconds,
    /// By whose it is.
    pub energies: Energies,
    /// By device.
    pub devices: Vec<DeviceEnergy>,
    /// Items done, where progress is known.
    pub items: Option<f64>,
    /// By phase, where the workload has phases.
    pub phases: Vec<PhaseResult>,
    /// What the workload reported: accuracy, latency.
    pub values: BTreeMap<String, f64>,
}

impl RunResult {
    /// Whose energy.
    pub fn energy_of(&self, of: EnergyOf) -> Option<Energy> {
        self.energies.of(of)
    }
}

/// How a configuration fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// As it should.
    Ok,
    /// With an error.
    Failed,
    /// It took longer than it may.
    Timeout,
    /// The device's memory was too small.
    OutOfMemory,
    /// No run was made of it, for nobody asked for one or the study is not done.
    NotRun,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::OutOfMemory => "out-of-memory",
            Self::NotRun => "not-run",
        })
    }
}

impl std::str::FromStr for Status {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Ok, Self::Failed, Self::Timeout, Self::OutOfMemory]
            .into_iter()
            .find(|status| status.to_string() == text)
            .ok_or_else(|| format!("`{text}` is no status of a run"))
    }
}

/// A run that did not end well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Neither [`Status::Ok`] nor [`Status::NotRun`].
    pub status: Status,
    /// In words.
    pub reason: String,
    /// The end of what the command printed.
    pub output: String,
}

impl Failure {
    /// Without output.
    pub fn new(status: Status, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
            output: String::new(),
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnd {
    /// Well.
    Done(RunResult),
    /// Not well.
    Failed(Failure),
}

/// A cap that a device enforces only in part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Enforced {
    /// Which device.
    pub device: DeviceId,
    /// As asked for and read back.
    pub requested: Watts,
    /// In force.
    pub enforced: Watts,
    /// Why it is lower.
    pub reason: Shortfall,
}

/// One run, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Which.
    pub task: Task,
    /// How it ended.
    pub end: RunEnd,
    /// When it began, in seconds since 1970: a label, nothing is computed from it.
    pub started_unix_s: Option<f64>,
    /// Caps of which only a part was in force.
    pub enforced: Vec<Enforced>,
    /// What should be known about it.
    pub warnings: Vec<String>,
}

impl RunRecord {
    /// With nothing around it.
    pub fn new(task: Task, end: RunEnd) -> Self {
        Self {
            task,
            end,
            started_unix_s: None,
            enforced: Vec::new(),
            warnings: Vec::new(),
        }
    }
}
