//! The result of one run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, Shortfall};
use sweetspot_quantity::{Joules, Seconds, Watts};

use crate::Task;

/// The part of the machine whose energy is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnergyOf {
    /// The GPUs of the job.
    #[default]
    JobGpus,
    /// All GPUs of the node, including idle ones.
    AllGpus,
    /// The whole node, measured at the wall.
    Node,
}

impl EnergyOf {
    /// Every variant.
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
            .ok_or_else(|| {
                format!("`{text}` is not a part of the machine: use job-gpus, all-gpus or node")
            })
    }
}

/// An amount of energy and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// The estimate.
    pub value: Joules,
    /// The 95 % interval, if it is known.
    pub interval95: Option<(Joules, Joules)>,
}

impl Energy {
    /// A value without uncertainty.
    pub const fn exact(value: Joules) -> Self {
        Self {
            value,
            interval95: None,
        }
    }
}

/// The energy of each part of the machine; what is unknown is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Energies {
    /// The energy of the GPUs of the job.
    pub job_gpus: Option<Energy>,
    /// The energy of all GPUs of the node.
    pub all_gpus: Option<Energy>,
    /// The energy of the whole node, measured at the wall.
    pub node: Option<Energy>,
}

impl Energies {
    /// The energy of one part of the machine.
    pub fn of(&self, of: EnergyOf) -> Option<Energy> {
        match of {
            EnergyOf::JobGpus => self.job_gpus,
            EnergyOf::AllGpus => self.all_gpus,
            EnergyOf::Node => self.node,
        }
    }
}

/// The energy of one device in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceEnergy {
    /// The device.
    pub device: DeviceId,
    /// Whether the job used the device.
    pub in_job: bool,
    /// The energy of the device in the run, if it is known.
    pub energy: Option<Energy>,
    /// The method by which the energy was measured, such as `counter` or `simulator`.
    pub method: String,
}

/// The time and energy of one phase in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// The name of the phase.
    pub name: String,
    /// The time spent in the phase.
    pub time: Seconds,
    /// The energy of the job's GPUs in the phase.
    pub energy: Joules,
}

/// The result of a successful run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The duration of the measured part of the run.
    pub time: Seconds,
    /// The energy of each part of the machine.
    pub energies: Energies,
    /// The energy of each device.
    pub devices: Vec<DeviceEnergy>,
    /// The number of items done, if progress is known.
    pub items: Option<f64>,
    /// The phases, if the workload has any.
    pub phases: Vec<PhaseResult>,
    /// The values that the workload reported, such as accuracy or latency.
    pub values: BTreeMap<String, f64>,
}

impl RunResult {
    /// The energy of one part of the machine.
    pub fn energy_of(&self, of: EnergyOf) -> Option<Energy> {
        self.energies.of(of)
    }
}

/// The status of a run or a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every run succeeded.
    Ok,
    /// A run failed.
    Failed,
    /// A run took longer than its timeout.
    Timeout,
    /// A run ran out of device memory.
    OutOfMemory,
    /// There was no run, because none was needed or the study is unfinished.
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
            .ok_or_else(|| format!("`{text}` is not the status of a run"))
    }
}

/// The failure of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The status: neither [`Status::Ok`] nor [`Status::NotRun`].
    pub status: Status,
    /// Why the run failed.
    pub reason: String,
    /// The end of the command's output.
    pub output: String,
}

impl Failure {
    /// A failure without output.
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
pub enum RunEnding {
    /// The run succeeded.
    Done(RunResult),
    /// The run failed.
    Failed(Failure),
}

/// A power cap that is lower in force than requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReducedCap {
    /// The device.
    pub device: DeviceId,
    /// The power cap that was requested and read back.
    pub requested: Watts,
    /// The power cap in force.
    pub enforced: Watts,
    /// Why the cap in force is lower than requested.
    pub reason: Shortfall,
}

/// One run as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run's configuration and repeat.
    pub task: Task,
    /// How the run ended.
    pub end: RunEnding,
    /// The time at which the run started, in seconds since 1970; for display only.
    pub started_unix_s: Option<f64>,
    /// The power caps in force that were lower than requested.
    #[serde(rename = "enforced")]
    pub reduced_caps: Vec<ReducedCap>,
    /// The warnings about the run.
    pub warnings: Vec<String>,
}

impl RunRecord {
    /// A run without start time and warnings.
    pub fn new(task: Task, end: RunEnding) -> Self {
        Self {
            task,
            end,
            started_unix_s: None,
            reduced_caps: Vec::new(),
            warnings: Vec::new(),
        }
    }
}
