//! A run whose power was limited to a cap, `sweetspot.hold/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{Machine, SchemaName};

/// A run whose power was limited to a cap. Values are in SI units, with fractions instead of percentages; a key is
/// absent if its value is unknown. Times are in seconds since the first batch.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Hold {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::HOLD))]
    pub schema: SchemaName,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The machine on which the program ran.
    pub machine: Machine,
    /// The GPU whose power was limited; the first one if there are several.
    pub device: Device,
    /// All GPUs whose power, summed up, was limited.
    pub devices: Vec<HeldDevice>,
    /// Whether several GPUs could get power caps of their own (`each`) or got the same (`same`); absent with one GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The power caps of several GPUs with the times of their changes; absent if none were set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caps_of_devices: Vec<CapsOfDevices>,
    /// The GPUs and ranks that were lost while the program ran; absent if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// The knob that `hold` changed to stay below the cap, such as `batch`, or `joint` for batch and clock.
    pub knob: String,
    /// The name of the control algorithm that chose the settings.
    pub mode: String,
    /// What `hold` optimises among the settings whose power is below the cap.
    pub objective: Goal,
    /// The batch sizes that `hold` was allowed to choose.
    pub batches: Vec<u64>,
    /// The power cap at the end of the run, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap_w: Option<f64>,
    /// The time from the start to the end of the command, in seconds.
    pub run_time_s: f64,
    /// The time from the first batch to the last, in seconds.
    pub time_s: f64,
    /// The number of items that the program processed.
    pub items: u64,
    /// The throughput in items per second.
    pub items_per_s: f64,
    /// The throughput after the setting stopped changing, in items per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_items_per_s: Option<f64>,
    /// The energy of all GPUs from the first batch to the last; absent if it is unknown.
    #[serde(flatten)]
    pub energy: Option<HoldEnergy>,
    /// The energy of an item in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_per_item_j: Option<f64>,
    /// What the cap binds: `mean:1s`, the mean power over a second (or another time), or `reading`, every single
    /// reading.
    pub cap_on: String,
    /// The share of the time in which what the cap binds was above it, after the setting stopped changing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation_share: Option<f64>,
    /// The time without power readings in seconds; absent if there were readings all the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread_s: Option<f64>,
    /// The share of single power readings above the cap; absent if readings are 1 s or more apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_share: Option<f64>,
    /// The 99th percentile of single power readings in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_p99_w: Option<f64>,
    /// The highest single power reading of the whole run in watts; absent if readings are 1 s or more apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highest_reading_w: Option<f64>,
    /// The highest value of what the cap binds, after the setting stopped changing, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_mean_w: Option<f64>,
    /// The average power after the setting stopped changing, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_power_w: Option<f64>,
    /// The time in which what the cap binds was above it while the setting still changed, in seconds.
    pub settling_excess_s: f64,
    /// The highest value of what the cap binds while the setting still changed, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settling_largest_mean_w: Option<f64>,
    /// The power that was left below the cap after the setting stopped changing, and what would use it; absent if it is
    /// less than a twentieth of the cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused: Option<Unused>,
    /// The time until the setting stopped changing, in seconds; absent if it changed until the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_s: Option<f64>,
    /// The number of measurement windows until the setting stopped changing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_windows: Option<u64>,
    /// How often the setting was changed.
    pub changes: u64,
    /// The mean batch size over the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_batch: Option<f64>,
    /// The 99th percentile of latency after the setting stopped changing, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p99_s: Option<f64>,
    /// The limit on the 99th percentile of latency, in seconds; absent if the user gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_bound_s: Option<f64>,
    /// Whether power and latency stayed within the cap and the latency limit; absent if that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
    /// The reason for the value of `met`, in words.
    pub met_reason: String,
    /// Whether the GPU got back the settings that it had before the run.
    pub restored: bool,
    /// The exit code of the command; absent if a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The number of the signal that ended the command; absent if it exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Each power cap that applied, with the time of its start, including the first.
    pub caps: Vec<CapChange>,
    /// Each setting with the time at which it was applied, including the first.
    pub settings: Vec<SettingChange>,
    /// The means over consecutive intervals of equal length.
    pub over_time: Vec<Slice>,
    /// Messages that were shown to the user during the run.
    pub notes: Vec<Note>,
}

/// Power that was left below the cap.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Unused {
    /// The cap minus the average power, in watts.
    pub power_w: f64,
    /// What would use it.
    pub remedy: Remedy,
}

/// What would use power that is left below the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// A setting of the GPU, such as its own power cap, under which a larger batch stays below the cap.
    DeviceSetting,
    /// Another batch size than the fixed one.
    BatchSize,
    /// Batch sizes above the largest allowed one.
    LargerBatches,
    /// A higher latency bound.
    LatencyBound,
    /// More requests.
    Requests,
    /// Nothing that can be set.
    Nothing,
}

/// The GPU whose power was limited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Device {
    /// The UUID of the GPU.
    pub uuid: String,
    /// The product name of the GPU.
    pub name: String,
}

/// One of the GPUs whose power was limited.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HeldDevice {
    /// The UUID of the GPU.
    pub uuid: String,
    /// The product name of the GPU.
    pub name: String,
    /// The energy of the GPU from the first batch to the last; absent if it is unknown.
    #[serde(flatten)]
    pub energy: Option<HoldEnergy>,
    /// The mean power of the GPU from the first batch to the last, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// The last power cap that `hold` set on the GPU, in watts; absent if it set none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap_w: Option<f64>,
    /// The last core clock that `hold` set on the GPU, in MHz; absent if it set none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_clock_mhz: Option<f64>,
}

/// The power caps of several GPUs and the time from which they applied.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CapsOfDevices {
    /// The time from which the caps applied, in seconds since the first batch.
    pub time_s: f64,
    /// The power cap of each GPU in watts, in the order of `devices`.
    pub caps_w: Vec<f64>,
}

/// The objective of `hold` among the settings whose power is below the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// The highest throughput in items per second.
    Throughput,
    /// The lowest energy per item.
    EnergyPerItem,
}

/// An energy during the run, and how it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HoldEnergy {
    /// The energy in joules.
    pub energy_j: f64,
    /// The ends of the energy's 95 % confidence interval, in joules.
    pub interval95_j: [f64; 2],
    /// The method by which the energy was measured.
    pub method: String,
}

/// A power cap and the time from which it applied.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CapChange {
    /// The time from which the cap applied, in seconds since the first batch.
    pub time_s: f64,
    /// The power cap in watts.
    pub cap_w: f64,
}

/// The values that `hold` sets: a batch size, and a clock or a cap if `hold` controls one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Setting {
    /// The batch size that `hold` requests from the program.
    pub batch: u64,
    /// The core clock in MHz; absent if `hold` does not set clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_clock_mhz: Option<f64>,
    /// The power cap set on the GPU, or the sum of those of several, in watts; absent if `hold` does not set caps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap_w: Option<f64>,
}

/// A setting and the time at which it was applied.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SettingChange {
    /// The setting that was applied.
    #[serde(flatten)]
    pub setting: Setting,
    /// The time at which the setting was applied, in seconds since the first batch.
    pub time_s: f64,
}

/// The means over one interval of the run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Slice {
    /// The setting at the end of the interval.
    #[serde(flatten)]
    pub setting: Setting,
    /// The end of the interval, in seconds since the first batch.
    pub time_s: f64,
    /// The power in the interval; absent if it is unknown.
    #[serde(flatten)]
    pub power: Option<SlicePower>,
    /// The power cap at the end of the interval, in watts.
    pub cap_w: f64,
    /// The throughput in the interval, in items per second.
    pub items_per_s: f64,
}

/// The power in one interval of the run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SlicePower {
    /// The mean power in the interval, in watts.
    pub power_w: f64,
    /// The highest power reading in the interval, in watts.
    pub highest_w: f64,
}

/// A message that was shown to the user.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Note {
    /// The time of the message, in seconds since the first batch.
    pub time_s: f64,
    /// The text of the message.
    pub text: String,
}
