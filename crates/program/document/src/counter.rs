//! A named counter of the service, `sweetspot.counter/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::SchemaName;

/// A named counter: the energy of GPUs between two moments. A key is absent if its value is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Counter {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::COUNTER))]
    pub schema: SchemaName,
    /// The name of the counter, unique for its user.
    pub name: String,
    /// Whether the counter runs.
    pub state: CounterState,
    /// The wall-clock time at which the counter was started, in seconds since 1970.
    pub started_unix_s: f64,
    /// The time from the start to the stop, or to this reading, in seconds, on the monotonic clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_s: Option<f64>,
    /// The energy of all GPUs of the counter in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The 95 % interval of the energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval95_j: Option<[f64; 2]>,
    /// The mean power of all GPUs of the counter in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_power_w: Option<f64>,
    /// The GPUs of the counter.
    pub devices: Vec<CounterDevice>,
    /// The processors and their memory, for users whom the policy lets read them; their energy is not part of `energy_j`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<CounterProcessor>,
    /// Remarks about the reliability of the values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Whether a counter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CounterState {
    /// The counter runs; its values are those up to this reading.
    Running,
    /// The counter was stopped.
    Stopped,
}

/// A GPU of a counter.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CounterDevice {
    /// The index of the GPU.
    pub index: u32,
    /// The UUID of the GPU.
    pub uuid: String,
    /// The energy of the GPU in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The 95 % interval of the energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval95_j: Option<[f64; 2]>,
    /// How the energy was measured, such as `counter+buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// A processor package, or the memory beside it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CounterProcessor {
    /// The name of the part, such as `package-0`.
    pub name: String,
    /// The name of its zone in the kernel, such as `intel-rapl:0`.
    pub zone: String,
    /// The energy of the part in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// Bounds of the energy: it is read once a second, so that a start or a stop lies between two readings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval95_j: Option<[f64; 2]>,
}
