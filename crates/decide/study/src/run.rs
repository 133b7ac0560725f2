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
    /// The GPUs that the job uses.
    #[default]
    JobGpus,
    /// All GPUs of the node, including idle ones.
    AllGpus,
    /// The whole node, measured at the wall.
    Node,
}

impl EnergyOf {
    /// All parts of the machine, the smallest first.
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
    /// The best estimate of the energy.
    pub value: Joules,
    /// The 95 % confidence interval of the energy; absent if it is unknown.
    pub interval95: Option<(Joules, Joules)>,
}

impl Energy {
    /// Creates an energy without uncertainty.
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
    /// The energy of the GPUs that the job uses.
    pub job_gpus: Option<Energy>,
    /// The energy of all GPUs of the node, including idle ones.
    pub all_gpus: Option<Energy>,
    /// The energy of the whole node, measured at the wall.
    pub node: Option<Energy>,
}

impl Energies {
    /// The energy of this part of the machine; `None` if it is unknown.
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
    /// The UUID of the device.
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
    /// The total time that the run spent in the phase, on the slowest GPU.
    pub time: Seconds,
    /// The energy of the job's GPUs in the phase; absent if the readings do not tell the phases apart.
    pub energy: Option<Joules>,
    /// The phase on each GPU of the job, in the order of the job's devices; empty if that is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_device: Vec<DevicePhase>,
}

/// The time and energy of one phase on one GPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DevicePhase {
    /// The total time that the GPU spent in the phase.
    pub time: Seconds,
    /// The energy of the GPU in the phase; absent if its readings do not tell the phases apart.
    pub energy: Option<Joules>,
}

/// The result of a successful run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The duration of the measured part of the run.
    pub time: Seconds,
    /// The energy of each part of the machine in the run.
    pub energies: Energies,
    /// The energy of each device in the run.
    pub devices: Vec<DeviceEnergy>,
    /// The number of items that the run processed; absent if progress is unknown.
    pub items: Option<f64>,
    /// The time and energy of each phase; empty if the workload reports no phases.
    pub phases: Vec<PhaseResult>,
    /// The values that the workload reported, such as accuracy or latency.
    pub values: BTreeMap<String, f64>,
}

impl RunResult {
    /// The energy of this part of the machine in the run; `None` if it is unknown.
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
    /// A run failed for another reason than a timeout or too little memory.
    Failed,
    /// A run took longer than its timeout.
    Timeout,
    /// A run failed because the device had too little memory.
    OutOfMemory,
    /// The configuration was not run, because that was not needed or the study is unfinished.
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

/// How and why a run failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure: neither [`Status::Ok`] nor [`Status::NotRun`].
    pub status: Status,
    /// Why the run failed.
    pub reason: String,
    /// The end of the command's output.
    pub output: String,
}

impl Failure {
    /// Creates a failure without any output of the command.
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
    /// The run succeeded with this result.
    Done(RunResult),
    /// The run failed for this reason.
    Failed(Failure),
}

/// A device's power cap that the device lowered below the requested one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReducedCap {
    /// The UUID of the device.
    pub device: DeviceId,
    /// The power cap that was requested and read back.
    pub requested: Watts,
    /// The power cap that the device enforced.
    pub enforced: Watts,
    /// Why the enforced cap is lower than requested.
    pub reason: Shortfall,
}

/// Where a run was made, if a scheduler chose the place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlace {
    /// The name of the node, as the scheduler or the machine itself calls it.
    pub node: String,
    /// The scheduler's name of the job; absent if no scheduler is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The UUIDs of the GPUs that the run could use.
    pub gpus: Vec<DeviceId>,
}

/// One run of a study as it is stored: its result or failure, and warnings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Which run it is: the index of its configuration, and its repeat number.
    pub task: Task,
    /// How the run ended.
    pub end: RunEnding,
    /// The time at which the run started, in seconds since 1970; for display only.
    pub started_unix_s: Option<f64>,
    /// The power caps that the devices enforced although a higher one was requested.
    #[serde(rename = "enforced")]
    pub reduced_caps: Vec<ReducedCap>,
    /// The warnings to the user about the run.
    pub warnings: Vec<String>,
    /// Where the run was made; absent if it was made on the machine of the sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<RunPlace>,
}

impl RunRecord {
    /// Creates the record of a run without start time and warnings.
    pub fn new(task: Task, end: RunEnding) -> Self {
        Self {
            task,
            end,
            started_unix_s: None,
            reduced_caps: Vec::new(),
            warnings: Vec::new(),
            place: None,
        }
    }
}
