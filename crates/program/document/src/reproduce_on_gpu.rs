//! A published study on the user's own GPUs, `sweetspot.reproduce-on-gpu/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::SchemaName;

/// A published study beside the same plan on the user's own GPUs and program. Values are in SI units, with fractions
/// instead of percentages; a key is absent if its value is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReproductionOnGpu {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::REPRODUCE_ON_GPU))]
    pub schema: SchemaName,
    /// The name of the published study.
    pub paper: String,
    /// The authors, title and venue of the publication.
    pub source: String,
    /// The network of the paper that is compared with.
    pub network: String,
    /// The profile of the paper's GPU that is compared with.
    pub paper_gpu: String,
    /// The user's GPU.
    pub device: String,
    /// The user's command.
    pub command: Vec<String>,
    /// Whose energy is compared: `job-gpus`, `all-gpus` or `node`.
    pub energy_of: String,
    /// The number of runs of each configuration.
    pub repeat: u32,
    /// What was varied: `power_cap_w`, `core_clock_mhz` or `batch`.
    pub quantity: String,
    /// Every setting, with the changes against the reference of each column.
    pub rows: Vec<OwnRow>,
    /// The best setting by each metric of the paper.
    pub best: Vec<OwnBest>,
    /// How the plan differs from that of the paper.
    pub notes: Vec<String>,
    /// The profiles of the paper's study that are not as they were fitted, because somebody has changed them; the
    /// simulated values come from them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_profiles: Vec<String>,
    /// The folder of the study.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub study: Option<String>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OwnRow {
    /// The number of GPUs of the job.
    pub gpus: u64,
    /// The setting of the paper's GPU.
    pub paper_value: f64,
    /// The setting of the user's GPU.
    pub own_value: f64,
    /// What the paper prints; absent if it prints nothing for this setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<OwnChange>,
    /// What the simulated GPU of the paper does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<OwnChange>,
    /// What the user's GPU did; absent if a run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<OwnChange>,
}

/// A change against the reference, as a fraction.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OwnChange {
    /// The change of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// The change of the energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<f64>,
}

/// The best setting by one metric.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OwnBest {
    /// The number of GPUs of the job.
    pub gpus: u64,
    /// The metric.
    pub metric: String,
    /// The printed best setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<OwnGain>,
    /// The best setting of the simulated GPU of the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<OwnGain>,
    /// The best setting of the user's GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<OwnGain>,
}

/// A best setting and its gain.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OwnGain {
    /// The setting, on its own GPU's scale; absent if the paper does not print it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// How much better the metric is than at the reference, as a fraction.
    pub gain: f64,
}
