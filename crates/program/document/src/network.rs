//! A network's operations and bytes, `sweetspot.network/1`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::common::{EnergyOf, Named, SchemaName};

/// The operations, bytes and bounds of a network: SI units, fractions instead of percentages; what is absent is
/// unknown. All counts are for one batch.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Network {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::NETWORK))]
    pub schema: SchemaName,
    /// The name of the network.
    pub network: String,
    /// The title of the network.
    pub title: String,
    /// The publications or files that describe the network.
    pub source: Vec<String>,
    /// The convention by which operations and bytes are counted.
    pub convention: String,
    /// The number format.
    pub precision: String,
    /// Whether the backward pass is counted.
    pub mode: Mode,
    /// The number of items in a batch.
    pub batch: u64,
    /// The inputs of the network.
    pub inputs: Vec<Input>,
    /// The counts of all layers.
    pub totals: Totals,
    /// The counts of the layers of each kind.
    pub kinds: Vec<LayerKind>,
    /// Each layer.
    pub layers: Vec<Layer>,
    /// Notes on the network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Other readings of the published description.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// Operators whose cost is unknown and not counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_operators: Vec<UnknownOperator>,
    /// Nodes whose shape is unknown and that are not counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_shape: Vec<String>,
    /// The least time and energy on a GPU, where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<GpuBound>,
    /// The efficiency in a study, where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub study: Option<StudyEfficiency>,
}

/// Whether a network is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The forward and the backward pass are counted.
    Train,
    /// The forward pass is counted.
    Infer,
}

/// An input of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Input {
    /// The name.
    pub name: String,
    /// The size of each dimension.
    pub shape: Vec<u64>,
}

/// A count; beyond 64 bits it is a floating-point number that lacks the last digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Count {
    /// An exact count.
    Exact(u64),
    /// A count beyond 64 bits.
    Rounded(f64),
}

impl From<u128> for Count {
    fn from(count: u128) -> Self {
        u64::try_from(count).map_or(Self::Rounded(count as f64), Self::Exact)
    }
}

impl JsonSchema for Count {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0})
    }
}

/// Operations and bytes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Counts {
    /// Multiply-accumulates.
    pub macs: Count,
    /// Floating-point operations.
    pub flops: Count,
    /// Operations of all kinds.
    pub operations: Count,
    /// Additions.
    pub additions: Count,
    /// Multiplications.
    pub multiplications: Count,
    /// Maxima of two numbers.
    pub maxima: Count,
    /// Divisions.
    pub divisions: Count,
    /// Exponentials.
    pub exponentials: Count,
    /// Bytes that are read.
    pub read_bytes: Count,
    /// Bytes that are written.
    pub written_bytes: Count,
    /// The computation-to-communication ratio: operations for each byte; absent where no byte is moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ctc: Option<f64>,
}

/// The counts of a whole network.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Totals {
    /// Operations and bytes.
    #[serde(flatten)]
    pub counts: Counts,
    /// The number of parameters.
    pub parameters: u64,
}

/// The counts of the layers of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LayerKind {
    /// The kind.
    pub kind: String,
    /// The number of layers.
    pub layers: u64,
    /// The number of parameters.
    pub parameters: u64,
    /// Operations and bytes.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A layer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Layer {
    /// The name.
    pub name: String,
    /// The kind, such as `conv`.
    pub kind: String,
    /// The shapes of the inputs.
    pub inputs: Vec<Vec<u64>>,
    /// The shapes of the outputs.
    pub outputs: Vec<Vec<u64>>,
    /// The number of parameters.
    pub parameters: u64,
    /// Operations and bytes, those of the backward pass included.
    #[serde(flatten)]
    pub counts: Counts,
    /// Operations and bytes of the backward pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backward: Option<Counts>,
    /// The least time and energy on a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

/// The least time and energy that a GPU needs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bound {
    /// The time in seconds.
    pub time_s: f64,
    /// The energy in joules.
    pub energy_j: f64,
    /// What limits the time.
    pub by: Limit,
}

/// What limits the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The arithmetic throughput.
    Compute,
    /// The memory bandwidth.
    Memory,
}

/// Another reading of a published description.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Variant {
    /// How the reading differs.
    pub about: String,
    /// The number of layers.
    pub layers: usize,
    /// The counts of all layers.
    pub totals: Totals,
}

/// An operator whose cost is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnknownOperator {
    /// The name of the operator.
    pub operator: String,
    /// The number of nodes.
    pub nodes: u64,
    /// The first of the nodes.
    pub first: String,
}

/// The least time and energy of a batch on a GPU, layer by layer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GpuBound {
    /// The profile of the GPU.
    pub gpu: String,
    /// The product name of the GPU.
    pub product: String,
    /// The peak throughput in floating-point operations per second.
    pub peak_flops_per_s: f64,
    /// The memory bandwidth in bytes per second.
    pub bandwidth_bytes_per_s: f64,
    /// The least time and energy of all layers.
    #[serde(flatten)]
    pub total: Bound,
    /// The number of layers that the memory bandwidth limits.
    pub memory_bound_layers: usize,
}

/// The efficiency of the network in a study.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StudyEfficiency {
    /// The name of the study.
    pub study: String,
    /// Whose energy counts.
    pub energy_of: EnergyOf,
    /// Floating-point operations of an item.
    pub flops_per_item: f64,
    /// The profile whose peaks are compared with; absent where none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Each configuration of the study.
    pub points: Vec<PointEfficiency>,
}

/// The efficiency of the network at a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PointEfficiency {
    /// The value of each axis of the study.
    pub settings: Named<f64>,
    /// The number of GPUs.
    pub gpus: u64,
    /// The energy of an item in joules.
    pub energy_per_item_j: f64,
    /// The time of an item in seconds.
    pub time_per_item_s: f64,
    /// Billions of floating-point operations per second for each watt.
    pub gflops_per_watt: f64,
    /// Floating-point operations per second.
    pub flops_per_s: f64,
    /// The speed as a fraction of the GPU's peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_peak: Option<f64>,
    /// The operations for each joule as a fraction of those of a large matrix multiplication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_sgemm: Option<f64>,
}
