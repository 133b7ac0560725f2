//! A study and its results, `sweetspot.study/1`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::common::{EnergyOf, Named, RelativeChange, SchemaName, Settings, Status, Summary};

pub use crate::recommendation::{BestPoint, Recommendation, Saving, SavingIntervals, Search};

/// A study and its results. Values are in SI units, with fractions instead of percentages; a key is absent if its value
/// is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Study {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::STUDY))]
    pub schema: SchemaName,
    /// The name of the study.
    pub study: String,
    /// The devices whose energy the results contain.
    pub energy_of: EnergyOf,
    /// The share of the GPUs in the energy of the node, as a fraction; present if a real node's energy is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_share_of_node: Option<f64>,
    /// The devices of the study.
    pub device: Device,
    /// The workload of the study.
    pub workload: Workload,
    /// The seed of the random order of runs and, on simulated GPUs, of the noise.
    pub seed: u64,
    /// The planned number of runs of each configuration.
    #[schemars(range(min = 1))]
    pub repeat: u64,
    /// The axes that the user requested, by their keys in `settings`.
    pub axes: Vec<String>,
    /// The objective that the user requested, or the default one.
    pub objective: String,
    /// The limits that a best point must meet, as on the command line.
    pub limits: Vec<String>,
    /// The configuration that all others are compared with.
    pub reference: Point,
    /// The configurations of the study with their results.
    pub points: Vec<Point>,
    /// The best point for each objective among the points that meet the limits.
    pub best: Named<BestPoint>,
    /// The recommended setting for the requested objective and limits; absent if no point can be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<Recommendation>,
    /// The recommended settings with and without regard to accuracy; absent if no accuracy is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy_choice: Option<AccuracyChoice>,
    /// The indices in `points` of the Pareto front of time and energy.
    pub pareto: Vec<usize>,
    /// The result of the search; absent if the study runs every configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// The nodes on which a scheduler made the runs, and how they compare; absent if the runs were made on one machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
}

/// A node on which runs were made, compared with the same configurations on the other nodes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Node {
    /// The name of the node.
    pub node: String,
    /// The number of runs on the node.
    pub runs: usize,
    /// The relative difference of the time of runs; absent if no configuration ran on several nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<NodeDifference>,
    /// The relative difference of the energy of runs; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<NodeDifference>,
}

/// The difference between a node and the others, as a fraction.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NodeDifference {
    /// The mean difference; 0.02 means 2 % more than on the other nodes.
    pub mean: f64,
    /// The 95 % confidence interval of the difference; absent with too few runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Whether the node differs from the others: more than chance explains, and by half a percent at least.
    pub differs: bool,
}

/// The devices of a study.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Device {
    /// The UUID of the first device.
    pub uuid: String,
    /// The product name of the first device.
    pub name: String,
    /// The devices as the user named them: the name of a profile or a selection of devices.
    pub profile: String,
    /// The backend that reads the devices, such as `nvml` or `sim`.
    pub backend: String,
    /// The UUIDs of all devices.
    #[schemars(length(min = 1))]
    pub uuids: Vec<String>,
    /// The range of power caps that the first device accepts; absent if its cap cannot be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap_w: Option<PowerCapRange>,
}

/// A range of power caps.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PowerCapRange {
    /// The lowest power cap in watts.
    #[schemars(range(min = 0))]
    pub min: f64,
    /// The highest power cap in watts.
    #[schemars(range(min = 0))]
    pub max: f64,
    /// The default power cap in watts.
    #[schemars(range(min = 0))]
    pub default: f64,
}

/// The workload of a study.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Workload {
    /// The name of the workload: `NETWORK@STUDY`, a path, or the command.
    pub name: String,
    /// The name of the network of a simulated workload; absent for a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Whether the workload is `training` or `inference`; absent for a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["training", "inference"]))]
    pub mode: Option<String>,
    /// The name of the convolution algorithm; absent if the workload does not offer several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conv_algorithm: Option<String>,
    /// The name of the data set; absent if the workload does not offer several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The GPU whose measured work was scaled to the simulated GPU; absent if none was scaled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaled_from: Option<String>,
    /// The number of items in a batch; absent if the batch size is an axis or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub batch: Option<u64>,
    /// The number of items in a run; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub items: Option<u64>,
    /// The program and its arguments, with placeholders for the values of axes; absent if the workload is simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
}

/// A configuration and its results. Comparisons with the reference are for the same number of items.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(extend(
    "if" = json!({"properties": {"status": {"const": "ok"}, "runs": {"minimum": 1}}}),
    "then" = json!({"required": ["time_s", "energy_by_device_j", "values", "phases", "objectives"]}),
))]
pub struct Point {
    /// The value of each knob in the configuration.
    pub settings: Settings,
    /// The state of the configuration.
    pub status: Status,
    /// Why the configuration failed; absent if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of runs that succeeded.
    pub runs: usize,
    /// The devices that enforce a lower power cap than the requested one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enforced: Vec<EnforcedCap>,
    /// The results of the runs; absent if no run succeeded.
    #[serde(flatten)]
    pub results: Option<PointResults>,
}

/// The means of a configuration's runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PointResults {
    /// The time of a run in seconds.
    pub time_s: Summary,
    /// The energy of a run in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<Summary>,
    /// The mean energy of each device in joules, by UUID.
    #[schemars(extend("additionalProperties" = json!({"type": "number", "minimum": 0})))]
    pub energy_by_device_j: Named<f64>,
    /// The average power of a run in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub average_power_w: Option<f64>,
    /// The mean number of items in a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub items: Option<f64>,
    /// The throughput of a run in items per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub items_per_s: Option<f64>,
    /// The energy per item in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub energy_per_item_j: Option<f64>,
    /// The mean of each value that the workload reported, such as its accuracy.
    pub values: Named<f64>,
    /// The mean time and energy of each phase that the workload marked.
    pub phases: Named<Phase>,
    /// Why the energy of phases is unknown in a run of this point; absent if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases_refused: Option<String>,
    /// The costs of one batch; absent if its size or the number of items is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchCosts>,
    /// The share of the energy that the GPUs draw while they wait for each other or exchange data; absent if the workload
    /// marks no such phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub waiting_energy_share: Option<f64>,
    /// The speed compared with the same setting on the fewest GPUs; absent if there is no such point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// The energy in joules if one GPU of each model is measured and multiplied by their number; absent for one GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub one_measured_j: Option<f64>,
    /// The changes of time and energy against the reference, as fractions; absent if the reference has no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vs_reference: Option<RelativeChange>,
    /// The value of each objective that can be computed from the results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objectives: Option<Named<f64>>,
}

/// A device that enforces a lower power cap than the requested one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EnforcedCap {
    /// The UUID of the device.
    pub uuid: String,
    /// The power cap that was requested, in watts.
    #[schemars(range(min = 0))]
    pub requested_w: f64,
    /// The power cap that the device enforces, in watts.
    #[schemars(range(min = 0))]
    pub enforced_w: f64,
    /// Why the device enforces a lower cap than requested.
    pub reason: Shortfall,
}

/// Why a device enforces a lower power cap than requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shortfall {
    /// The device is too hot.
    Thermal,
    /// A limit of the board other than the power cap is lower.
    BoardLimit,
    /// A budget of the node, or the scheduler's cap for the job, is lower.
    Ceiling,
    /// The device does not report a reason.
    Unknown,
}

/// The mean time and energy of a phase in a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Phase {
    /// The time of the phase in seconds.
    #[schemars(range(min = 0))]
    pub time_s: f64,
    /// The energy of the phase in joules; absent if the readings do not tell the phases apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The average power in the phase, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// The time of the phase on each device of a job on several, in seconds, by UUID.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub time_by_device_s: Named<f64>,
    /// The energy of each device of a job on several in the phase, in joules, by UUID.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub energy_by_device_j: Named<f64>,
}

/// The mean costs of one batch on all GPUs of the job together.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BatchCosts {
    /// The number of items in a batch, on all GPUs together.
    #[schemars(range(min = 1))]
    pub items: u64,
    /// The number of batches in a run.
    pub iterations: f64,
    /// The time of a batch in seconds.
    #[schemars(range(min = 0))]
    pub time_s: f64,
    /// The energy of a batch in joules; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The phases of a batch.
    pub phases: Named<Phase>,
}

/// The speed of a job compared with the same job on fewer GPUs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Scaling {
    /// The number of GPUs that the job is compared with.
    #[schemars(range(min = 1))]
    pub base_gpus: u64,
    /// The speed divided by that on `base_gpus`.
    pub speed_up: f64,
    /// The speed-up divided by the factor between the numbers of GPUs.
    pub efficiency: f64,
}

/// The recommended settings with and without regard to accuracy, for the requested objective.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AccuracyChoice {
    /// The name of the value that is an accuracy.
    pub value: String,
    /// The index in `points` of the recommended setting without regard to accuracy; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without: Option<usize>,
    /// The index in `points` of the recommended setting that meets the limit on accuracy, or whose accuracy is within 5
    /// percentage points of the best; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<usize>,
    /// The indices in `points` of settings whose accuracy is unknown.
    pub unknown: Vec<usize>,
    /// The explanation in a sentence.
    pub reason: String,
}
