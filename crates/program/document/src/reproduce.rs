//! A published study and its reproduction, `sweetspot.reproduce/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{Named, NumberOrText, SchemaName};

/// A published study and its reproduction on simulated GPUs. Values are in SI units, with fractions instead of
/// percentages; a key is absent if its value is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reproduction {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::REPRODUCE))]
    pub schema: SchemaName,
    /// The name of the published study.
    pub paper: String,
    /// The authors, title and venue of the publication.
    pub source: String,
    /// The seed of the simulated noise.
    pub seed: u64,
    /// The number of simulated runs.
    pub runs: usize,
    /// The published values beside the reproduced ones.
    pub rows: Vec<Row>,
    /// The number of values that have a tolerance.
    pub judged: usize,
    /// The number of values that are within their tolerance.
    pub met: usize,
    /// Rules that a number of values, but not all, must be within a tolerance.
    pub counted: Vec<Criterion>,
    /// Whether every value with a tolerance is within it and every rule in `counted` is met.
    pub within: bool,
    /// The conclusions of the paper, and whether the reproduction confirms them.
    pub conclusions: Vec<Conclusion>,
    /// Whether the reproduction confirms the paper: `within` is true, and no conclusion fails.
    pub confirmed: bool,
    /// The parts of the paper that are not reproduced, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<String>,
    /// The results of the jobs in batch_sizer_2021; empty for other papers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
    /// How the profiles were fitted to the paper; absent if that is not stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
}

/// How the profiles of a study were fitted to its published values.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fit {
    /// The number of free parameters.
    pub free_parameters: usize,
    /// The number of these parameters that were not fitted but chosen by hand with the published values in view.
    pub by_hand: usize,
    /// The number of independent published values that they were fitted to.
    pub values: usize,
    /// The predictions of values by fits that did not use them.
    pub held_out: Vec<HeldOut>,
    /// The number of fitted values for which no fits without a part of the study are stored.
    pub not_held_out: usize,
    /// The profiles of the study that are not as they were fitted, because somebody has changed them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_profiles: Vec<String>,
    /// Other forms of the study with fewer parameters, and how far they are off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forms: Vec<Form>,
}

/// Another form of a study with fewer parameters than its profiles.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Form {
    /// The name of the form, by which `simulate --errors` shows it.
    pub name: String,
    /// What is different in this form, in words.
    pub what: String,
    /// The number of free parameters.
    pub free_parameters: usize,
    /// The number of these parameters that were not fitted but chosen by hand with the published values in view.
    pub by_hand: usize,
    /// The number of independent published values that they were fitted to, or chosen with in view.
    pub values: usize,
    /// The mean deviation of times, energies and speed-ups, whatever their sign, as a fraction of the published values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_relative: Option<f64>,
    /// The largest deviation of a time, an energy or a speed-up, as a fraction of the published value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_relative: Option<f64>,
    /// The mean deviation of published percentages, whatever their sign, in percentage points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_points: Option<f64>,
    /// The largest deviation of a published percentage, in percentage points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_points: Option<f64>,
    /// The predictions of values by fits that did not use them.
    pub held_out: Vec<HeldOut>,
}

/// The predictions of some published values by a fit to the others.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HeldOut {
    /// What the fit did not use, such as `8 GPUs`.
    pub without: String,
    /// The number of values that were held out.
    pub values: usize,
    /// The mean deviation of times, energies and speed-ups, whatever their sign, as a fraction of the published values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_relative: Option<f64>,
    /// The largest deviation of a time, an energy or a speed-up, as a fraction of the published value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_relative: Option<f64>,
    /// The mean deviation of published percentages, whatever their sign, in percentage points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_points: Option<f64>,
    /// The largest deviation of a published percentage, in percentage points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_points: Option<f64>,
}

/// A published value and its reproduction.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The table, figure or section of the paper.
    pub table: String,
    /// Labels that identify the value, such as `network` and `power_cap_w`; the label `value` names the quantity.
    pub row: Named<NumberOrText>,
    /// The value as printed in the paper; absent if the table's cell is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// The value from the simulated runs; absent if it cannot be reproduced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reproduced: Option<f64>,
    /// The reproduced minus the published value, as a fraction of the published value or in the unit of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// The largest accepted deviation, in the unit of `deviation`; absent if the value is only shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Whether the deviation is within the tolerance; absent if there is no tolerance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<bool>,
    /// Whether the published value is predicted, or was used to make the simulation: `predicted`, `fitted` or `input`;
    /// `derived` if it follows from other published values; absent if that is not stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// A remark, such as an error in the printed table; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A rule that at least `needed` of `of` values must meet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Criterion {
    /// The rule in words.
    pub what: String,
    /// The number of values that meet the rule.
    pub met: usize,
    /// The number of values that were checked.
    pub of: usize,
    /// The number of values that must meet the rule.
    pub needed: usize,
    /// Whether at least `needed` values meet the rule.
    pub within: bool,
}

/// A conclusion of the paper, and whether the reproduction confirms it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Conclusion {
    /// The paper's conclusion in words.
    pub conclusion: String,
    /// Whether the reproduction confirms the conclusion; absent if that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    /// What the reproduction shows, in words.
    pub here: String,
}

/// A job of batch_sizer_2021 and its results.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Job {
    /// The number of the job in the paper.
    pub job: u64,
    /// The name of the network that the job runs.
    pub network: String,
    /// The name of the data set that the job uses.
    pub dataset: String,
    /// The job's power cap in watts.
    pub cap_w: f64,
    /// The results of each control algorithm of `hold`, by the algorithm's name; `robust:reading` is the algorithm `robust`
    /// with the cap on readings.
    pub modes: Named<JobMode>,
}

/// The results of one control algorithm of `hold` on a job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JobMode {
    /// What the cap binds: `mean:1s` or `reading`.
    pub cap_on: String,
    /// The throughput in items per second.
    pub items_per_s: f64,
    /// The share of the time in which what the cap binds was above it, after the setting stopped changing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation_share: Option<f64>,
    /// The share of single readings above the cap in the whole job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_share: Option<f64>,
    /// The mean batch size over the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_batch: Option<f64>,
    /// The number of measurement windows until the setting stopped changing; absent if it changed until the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_windows: Option<u64>,
    /// The energy per item in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_per_item_j: Option<f64>,
    /// The highest value of what the cap binds, after the setting stopped changing, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_mean_w: Option<f64>,
    /// How often the setting was changed.
    pub changes: u64,
    /// The batch size at the end of the job.
    pub last_batch: u64,
    /// The core clock at the end of the job, in MHz; absent if the algorithm does not set clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_core_clock_mhz: Option<f64>,
}
