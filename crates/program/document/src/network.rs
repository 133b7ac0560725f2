//! A network's operations and bytes, `sweetspot.network/1`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::common::{EnergyOf, Named, SchemaName};

/// The operations, bytes and lower bounds of a network. Values are in SI units, with fractions instead of percentages;
/// a key is absent if its value is unknown. All counts are for one batch.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Network {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::NETWORK))]
    pub schema: SchemaName,
    /// The name of the network.
    pub network: String,
    /// The full name of the network, such as `ResNet-50`.
    pub title: String,
    /// The publications or files that describe the network.
    pub source: Vec<String>,
    /// The convention by which operations and bytes are counted.
    pub convention: String,
    /// The number format of the network's values, such as `fp16`.
    pub precision: String,
    /// Whether the counts are for training, which includes the backward pass, or for inference.
    pub mode: Mode,
    /// The number of items in a batch.
    pub batch: u64,
    /// The inputs of the network.
    pub inputs: Vec<Input>,
    /// The operations and bytes of all layers together.
    pub totals: Totals,
    /// The operations and bytes of all layers of each kind.
    pub kinds: Vec<LayerKind>,
    /// The layers, in execution order.
    pub layers: Vec<Layer>,
    /// Remarks about the network's description.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Alternative interpretations of the published description of the network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// Operators that are not counted because their cost is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_operators: Vec<UnknownOperator>,
    /// The names of graph nodes that are not counted because their shape is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_shape: Vec<String>,
    /// How much of the network is not counted; absent if everything is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_share: Option<UnknownShare>,
    /// Lower bounds of time and energy on a GPU; absent if the user named no GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<GpuBound>,
    /// What the network is predicted to cost on the GPU; absent without a GPU, or if its profile has no constants for
    /// predictions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Prediction>,
    /// The network's efficiency as measured in a study; absent if the user named no study.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub study: Option<StudyEfficiency>,
}

/// Training or inference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The forward and the backward pass are counted.
    Train,
    /// The forward pass is counted.
    Infer,
}

/// What a network is predicted to cost on a GPU.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Prediction {
    /// The name of the GPU's profile.
    pub gpu: String,
    /// The number of items in a batch.
    pub batch: u64,
    /// Whether the network is trained.
    pub mode: Mode,
    /// Whether networks were measured on this GPU; otherwise another GPU's constants are used with this one's data sheet.
    pub is_measured: bool,
    /// The number of items per second.
    pub items_per_s: f64,
    /// The average power in watts.
    pub power_w: f64,
    /// The energy of an item in joules.
    pub energy_per_item_j: f64,
    /// The memory that weights and data need, in bytes.
    pub memory_bytes: f64,
    /// The largest batch that fits into the GPU's memory, if the requested one does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_batch: Option<u64>,
    /// The intervals that hold 95 % of such predictions, by networks that were left out of the fit.
    pub interval95: PredictionIntervals,
    /// The best power cap and the best core clock for the objective.
    pub best: Vec<BestSetting>,
    /// The layers that take the longest, with those that are executed together with them.
    pub slowest_layers: Vec<SlowLayer>,
}

/// The intervals that hold 95 % of predictions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PredictionIntervals {
    /// The interval of the items per second.
    pub items_per_s: [f64; 2],
    /// The interval of the power in watts.
    pub power_w: [f64; 2],
    /// The interval of the energy of an item in joules.
    pub energy_per_item_j: [f64; 2],
    /// The interval of the memory in bytes.
    pub memory_bytes: [f64; 2],
}

/// The best value of a setting for an objective.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BestSetting {
    /// The setting and its unit.
    pub setting: PredictedSetting,
    /// The best value.
    pub value: f64,
    /// The lowest and highest best value if the power is off by as much as predictions are.
    pub interval95: [f64; 2],
    /// The change of the energy of an item by the setting, as a share: -0.1 for 10 % less.
    pub energy_change: f64,
    /// The change of the time of an item by the setting, as a share.
    pub time_change: f64,
}

/// A setting whose best value is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PredictedSetting {
    /// The power cap in watts.
    PowerCapW,
    /// The core clock in megahertz.
    CoreClockMhz,
}

/// A layer that takes long.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SlowLayer {
    /// The name of the layer.
    pub name: String,
    /// The predicted time for a batch, in seconds.
    pub time_s: f64,
    /// The share of the time of all layers.
    pub share: f64,
}

/// An input of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Input {
    /// The name of the input.
    pub name: String,
    /// The size of each dimension of the input, including the batch.
    pub shape: Vec<u64>,
}

/// A count: exact up to 64 bits, above that a rounded floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Count {
    /// An exact count.
    Exact(u64),
    /// A count of more than 64 bits, rounded.
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

/// The numbers of operations by kind, and of bytes read and written.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Counts {
    /// The number of multiply-accumulates.
    pub macs: Count,
    /// The number of floating-point operations.
    pub flops: Count,
    /// The number of arithmetic operations of all kinds together.
    pub operations: Count,
    /// The number of additions.
    pub additions: Count,
    /// The number of multiplications.
    pub multiplications: Count,
    /// The number of operations that take the larger of two numbers.
    pub maxima: Count,
    /// The number of divisions.
    pub divisions: Count,
    /// The number of exponentials.
    pub exponentials: Count,
    /// The number of bytes that are read from memory.
    pub read_bytes: Count,
    /// The number of bytes that are written to memory.
    pub written_bytes: Count,
    /// The computation-to-communication ratio: operations per byte; absent if no byte is read or written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ctc: Option<f64>,
}

/// The counts of a whole network.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Totals {
    /// The operations and bytes of all layers.
    #[serde(flatten)]
    pub counts: Counts,
    /// The number of trained parameters of the network.
    pub parameters: u64,
}

/// The counts of the layers of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LayerKind {
    /// The kind of layer, such as `conv`.
    pub kind: String,
    /// The number of layers of this kind.
    pub layers: u64,
    /// The number of trained parameters in layers of this kind.
    pub parameters: u64,
    /// The operations and bytes of these layers.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A layer of a network.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Layer {
    /// The name of the layer.
    pub name: String,
    /// The kind of layer, such as `conv`.
    pub kind: String,
    /// The shape of each input of the layer.
    pub inputs: Vec<Vec<u64>>,
    /// The shape of each output of the layer.
    pub outputs: Vec<Vec<u64>>,
    /// The number of trained parameters of the layer.
    pub parameters: u64,
    /// The operations and bytes of the layer, including those of the backward pass.
    #[serde(flatten)]
    pub counts: Counts,
    /// The operations and bytes of the backward pass; absent for inference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backward: Option<Counts>,
    /// Lower bounds of the layer's time and energy on a GPU; absent if the user named no GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

/// Lower bounds of the time and energy that a GPU needs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bound {
    /// The lower bound of the time, in seconds.
    pub time_s: f64,
    /// The lower bound of the energy, in joules.
    pub energy_j: f64,
    /// Whether arithmetic or memory access limits the time.
    pub by: Limit,
}

/// The resource that limits the time of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The arithmetic throughput limits the time.
    Compute,
    /// The memory bandwidth limits the time.
    Memory,
}

/// An alternative interpretation of a published description.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Variant {
    /// How this interpretation differs from the main one.
    pub about: String,
    /// The number of layers in this interpretation.
    pub layers: usize,
    /// The operations and bytes of all layers together.
    pub totals: Totals,
}

/// An operator whose cost is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnknownOperator {
    /// The name of the operator.
    pub operator: String,
    /// The number of graph nodes with this operator.
    pub nodes: u64,
    /// The name of the first graph node with this operator.
    pub first: String,
    /// The number of elements of all inputs and outputs of these nodes whose shapes are known.
    pub elements: u64,
}

/// How much of a network is not counted, because operators or shapes are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UnknownShare {
    /// The least share of the data that unknown operators read and write: each input and output of known shape once.
    pub data: f64,
    /// The share of the graph nodes that are not counted, among those and the layers.
    pub nodes: f64,
}

/// Lower bounds of a batch's time and energy on a GPU if layers run one after another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GpuBound {
    /// The name of the GPU's profile.
    pub gpu: String,
    /// The product name of the GPU.
    pub product: String,
    /// The GPU's peak throughput in floating-point operations per second.
    pub peak_flops_per_s: f64,
    /// The GPU's memory bandwidth in bytes per second.
    pub bandwidth_bytes_per_s: f64,
    /// The sum of the layers' lower bounds.
    #[serde(flatten)]
    pub total: Bound,
    /// The number of layers whose time is limited by the memory bandwidth.
    pub memory_bound_layers: usize,
}

/// The efficiency of the network in a study.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StudyEfficiency {
    /// The name of the study.
    pub study: String,
    /// The devices whose energy the study's results contain.
    pub energy_of: EnergyOf,
    /// The floating-point operations for one item.
    pub flops_per_item: f64,
    /// The name of the GPU profile whose peak rates the results are compared with; absent if none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// The efficiency in each configuration of the study.
    pub points: Vec<PointEfficiency>,
}

/// The efficiency of the network in one configuration of the study.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PointEfficiency {
    /// The value of each axis of the study.
    pub settings: Named<f64>,
    /// The number of GPUs that the configuration uses.
    pub gpus: u64,
    /// The energy per item in joules.
    pub energy_per_item_j: f64,
    /// The time per item in seconds.
    pub time_per_item_s: f64,
    /// The billions of floating-point operations per second for each watt.
    pub gflops_per_watt: f64,
    /// The number of floating-point operations per second.
    pub flops_per_s: f64,
    /// The floating-point rate as a fraction of the GPUs' peak rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_peak: Option<f64>,
    /// The operations per joule as a fraction of those that a large matrix multiplication reaches on this GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_sgemm: Option<f64>,
}
