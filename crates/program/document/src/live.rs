//! What happens on a machine now, `sweetspot.live/1`: the data of the live page and of `sweetspot top`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::SchemaName;

/// The present state of all GPUs, leases and jobs of a machine. A key is absent if its value is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Live {
    /// The name and version of this format.
    #[serde(skip_deserializing, default = "schema_name")]
    #[schemars(extend("const" = SchemaName::LIVE))]
    pub schema: SchemaName,
    /// The wall-clock time in seconds since 1970.
    pub unix_s: f64,
    /// The name of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The GPUs.
    pub gpus: Vec<LiveGpu>,
    /// The leases.
    #[serde(default)]
    pub leases: Vec<LiveLease>,
    /// The jobs of Sweetspot's commands that report to the service.
    #[serde(default)]
    pub jobs: Vec<LiveJob>,
}

/// The name of this format, which readers need not compare.
const fn schema_name() -> SchemaName {
    SchemaName::LIVE
}

/// A GPU now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveGpu {
    /// The index of the GPU.
    pub index: u32,
    /// The UUID of the GPU.
    pub uuid: String,
    /// The product name of the GPU.
    pub name: String,
    /// Whether the GPU no longer answers.
    #[serde(default)]
    pub lost: bool,
    /// The power in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// The power cap that the GPU enforces, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_w: Option<f64>,
    /// The vendor's default power cap in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_cap_w: Option<f64>,
    /// The core clock in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_clock_mhz: Option<f64>,
    /// The memory clock in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock_mhz: Option<f64>,
    /// The temperature in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    /// The share of recent time in which a kernel ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// Why the GPU does not run faster, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
    /// The total time for which the power cap limited the clock, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_by_power_s: Option<f64>,
    /// The total time for which the temperature limited the clock, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_by_heat_s: Option<f64>,
    /// The energy since the measuring process started, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// Mean powers of the last seconds in watts, one for each second, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent_power_w: Vec<f64>,
    /// Core clocks of the last seconds, oldest first: how many seconds ago, and the clock in MHz. They are read only while
    /// somebody looks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent_core_clock_mhz: Vec<[f64; 2]>,
}

/// A lease of a GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveLease {
    /// The UUID of the GPU.
    pub gpu: String,
    /// The name of the user who has it.
    pub user: String,
    /// The id of the process that has it; absent for a job of a scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The name of the scheduler's job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// What the lease is for: `setting` or `ceiling`.
    pub kind: String,
    /// The settings that it asks for, in words.
    pub settings: String,
    /// How long it has lasted, in seconds.
    pub age_s: f64,
    /// How long the policy lets it last from now on, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_s: Option<f64>,
    /// The energy of the GPU since the lease began, in joules; absent if other programs use the GPU too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
}

/// A running command of Sweetspot, as it reports itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveJob {
    /// The name of its user; the service fills it in.
    #[serde(default)]
    pub user: String,
    /// The id of its process; the service fills it in.
    #[serde(default)]
    pub pid: u32,
    /// The command: `measure`, `run`, `sweep`, `tune`, `hold` or `budget`.
    pub verb: String,
    /// The UUIDs of its GPUs.
    #[serde(default)]
    pub gpus: Vec<String>,
    /// How long it has run, in seconds.
    #[serde(default)]
    pub elapsed_s: f64,
    /// What it does at the moment, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The items that it completes in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_per_s: Option<f64>,
    /// The energy of an item in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_per_item_j: Option<f64>,
    /// The energy saved so far against its measured reference, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_energy_j: Option<f64>,
    /// The money saved so far against its measured reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_money: Option<f64>,
    /// The currency of `saved_money`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The power cap that it keeps, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_w: Option<f64>,
    /// Its figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<LiveFigure>,
}

/// The figure of a running command: points that are joined in order of `x`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveFigure {
    /// The name of the horizontal axis with its unit.
    pub x: String,
    /// The name of the vertical axis with its unit.
    pub y: String,
    /// The points.
    pub points: Vec<[f64; 2]>,
}
