//! A run that was held below a power cap, `sweetspot.hold/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{Machine, SchemaName};

/// A run that was held below a power cap: SI units, fractions instead of percentages; what is absent is unknown.
/// Times are since the first batch.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Hold {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::HOLD))]
    pub schema: SchemaName,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The machine.
    pub machine: Machine,
    /// The GPU.
    pub device: Device,
    /// The knob that was set.
    pub knob: String,
    /// The control algorithm.
    pub mode: String,
    /// What is best among the settings that keep the cap.
    pub objective: Goal,
    /// The batch sizes to choose from.
    pub batches: Vec<u64>,
    /// The last power cap in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap_w: Option<f64>,
    /// The time of the command in seconds.
    pub run_time_s: f64,
    /// The time from the first batch to the last, in seconds.
    pub time_s: f64,
    /// The number of items that were done.
    pub items: u64,
    /// The throughput in items per second.
    pub items_per_s: f64,
    /// The throughput after settling, in items per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_items_per_s: Option<f64>,
    /// The energy of the GPU from the first batch to the last; absent where it is unknown.
    #[serde(flatten)]
    pub energy: Option<HoldEnergy>,
    /// The energy of an item in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_per_item_j: Option<f64>,
    /// The share of the time after settling in which the 1 s mean of power was above the cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation_share: Option<f64>,
    /// The share of single power readings above the cap, where they are finer than 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_share: Option<f64>,
    /// The 99th percentile of single power readings in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_p99_w: Option<f64>,
    /// The highest 1 s mean of power after settling, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_mean_w: Option<f64>,
    /// The time until the setting settled, in seconds; absent where it changed until the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_s: Option<f64>,
    /// The number of windows until the setting settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_windows: Option<u64>,
    /// The number of changes of the setting.
    pub changes: u64,
    /// The average batch size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_batch: Option<f64>,
    /// The 99th percentile of latency in seconds, after settling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p99_s: Option<f64>,
    /// The limit on that latency, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_bound_s: Option<f64>,
    /// Whether the cap and the latency limit were kept; absent where it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
    /// Why they count as kept, not kept or unknown.
    pub met_reason: String,
    /// Whether the GPU was restored to its settings before the run.
    pub restored: bool,
    /// The exit code of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Each power cap and when it came, the first included.
    pub caps: Vec<CapChange>,
    /// Each setting and when it was set, the first included.
    pub settings: Vec<SettingChange>,
    /// Means of equal parts of the time.
    pub over_time: Vec<Slice>,
    /// Messages to the user.
    pub notes: Vec<Note>,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Device {
    /// The UUID.
    pub uuid: String,
    /// The product name.
    pub name: String,
}

/// What is best among the settings that keep the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// The most items per second.
    Throughput,
    /// The least energy of an item.
    EnergyPerItem,
}

/// The energy of a hold, and how it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HoldEnergy {
    /// The energy in joules.
    pub energy_j: f64,
    /// The ends of the energy's 95 % interval in joules.
    pub interval95_j: [f64; 2],
    /// The measurement method.
    pub method: String,
}

/// A power cap and when it came.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CapChange {
    /// When, in seconds.
    pub time_s: f64,
    /// The power cap in watts.
    pub cap_w: f64,
}

/// What `hold` sets.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Setting {
    /// The batch size.
    pub batch: u64,
    /// The core clock in MHz, where it is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_clock_mhz: Option<f64>,
    /// The GPU's own power cap in watts, where it is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap_w: Option<f64>,
}

/// A setting and when it was set.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SettingChange {
    /// The setting.
    #[serde(flatten)]
    pub setting: Setting,
    /// When, in seconds.
    pub time_s: f64,
}

/// Means of a part of the time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Slice {
    /// The setting at the end.
    #[serde(flatten)]
    pub setting: Setting,
    /// The end of the part, in seconds.
    pub time_s: f64,
    /// The power; absent where it is unknown.
    #[serde(flatten)]
    pub power: Option<SlicePower>,
    /// The power cap in watts.
    pub cap_w: f64,
    /// The throughput in items per second.
    pub items_per_s: f64,
}

/// The power in a part of the time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SlicePower {
    /// The mean power in watts.
    pub power_w: f64,
    /// The highest reading in watts.
    pub highest_w: f64,
}

/// A message to the user.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Note {
    /// When, in seconds.
    pub time_s: f64,
    /// The message.
    pub text: String,
}
