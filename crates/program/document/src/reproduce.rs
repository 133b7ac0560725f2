//! A published study and its reproduction, `sweetspot.reproduce/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{Named, NumberOrText, SchemaName};

/// A published study and its reproduction on simulated GPUs: SI units, fractions instead of percentages; what is
/// absent is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reproduction {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::REPRODUCE))]
    pub schema: SchemaName,
    /// The name of the published study.
    pub paper: String,
    /// Where the study was published.
    pub source: String,
    /// The seed of the simulation.
    pub seed: u64,
    /// The number of simulated runs.
    pub runs: usize,
    /// Each published value.
    pub rows: Vec<Row>,
    /// The number of values that have a tolerance.
    pub judged: usize,
    /// The number of values that are within their tolerance.
    pub met: usize,
    /// Criteria that need to hold for a number of cases.
    pub counted: Vec<Criterion>,
    /// Whether all tolerances and criteria are met.
    pub within: bool,
    /// The conclusions of the paper.
    pub conclusions: Vec<Conclusion>,
    /// Parts of the paper that are not reproduced yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<String>,
    /// The jobs of batch_sizer_2021.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
}

/// A published value and its reproduction.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The table, figure or section of the paper.
    pub table: String,
    /// What the value is of, such as its `network` and `power_cap_w`; `value` names the quantity.
    pub row: Named<NumberOrText>,
    /// The published value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// The reproduced value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reproduced: Option<f64>,
    /// The difference, as a fraction of the published value or in its unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// The largest deviation that is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Whether the deviation is within the tolerance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<bool>,
    /// A note on the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A criterion that needs to hold for a number of cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Criterion {
    /// The criterion.
    pub what: String,
    /// The number of cases for which it holds.
    pub met: usize,
    /// The number of cases.
    pub of: usize,
    /// The number of cases for which it needs to hold.
    pub needed: usize,
    /// Whether it holds for as many cases as needed.
    pub within: bool,
}

/// A conclusion of the paper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Conclusion {
    /// The conclusion.
    pub conclusion: String,
    /// Whether it holds in the reproduction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    /// What the reproduction shows.
    pub here: String,
}

/// A job of batch_sizer_2021.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Job {
    /// The number of the job in the paper.
    pub job: u64,
    /// The network.
    pub network: String,
    /// The data set.
    pub dataset: String,
    /// The power cap in watts.
    pub cap_w: f64,
    /// The results of each mode, by its name.
    pub modes: Named<JobMode>,
}

/// The results of one mode of `hold` on a job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JobMode {
    /// The throughput in items per second.
    pub items_per_s: f64,
    /// The share of the time after settling in which the 1 s mean of power was above the cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation_share: Option<f64>,
    /// The average batch size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_batch: Option<f64>,
    /// The number of windows until the setting settled; absent where it kept changing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_windows: Option<u64>,
    /// The energy of an item in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_per_item_j: Option<f64>,
    /// The highest 1 s mean of power after settling, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_mean_w: Option<f64>,
    /// The number of changes of the setting.
    pub changes: u64,
    /// The batch size at the end.
    pub last_batch: u64,
    /// The core clock at the end, in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_core_clock_mhz: Option<f64>,
}
