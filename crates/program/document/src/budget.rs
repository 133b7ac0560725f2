//! GPUs that were kept together under a power budget, `sweetspot.budget/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{Machine, SchemaName};

/// GPUs that were kept together under a power budget. Values are in SI units, with fractions instead of percentages; a
/// key is absent if its value is unknown. Times are in seconds since the start.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Budget {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::BUDGET))]
    pub schema: SchemaName,
    /// The machine with the GPUs.
    pub machine: Machine,
    /// Whose power the budget limits.
    pub of: BudgetOf,
    /// The budget at the end, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_w: Option<f64>,
    /// How long the budget was kept, in seconds.
    pub time_s: f64,
    /// The time in seconds in which the power that the budget limits was unknown: that of at least one GPU, or that at the
    /// meter of the whole machine. With more than 1 % of the time it is unknown whether the budget was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread_s: Option<f64>,
    /// Whether the budget was kept: absent if too little is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
    /// The share of the time with readings in which the mean power of a second was above the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation_share: Option<f64>,
    /// The mean power of all GPUs together, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_power_w: Option<f64>,
    /// The highest mean power of a second of all GPUs together, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_mean_w: Option<f64>,
    /// The power of the whole machine, if the budget was for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<BudgetNode>,
    /// The share of the budget that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_share: Option<f64>,
    /// The energy of all GPUs together in joules, from their power readings; absent if they miss more than 1 % of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The number of power caps that were set.
    pub changes: u64,
    /// The GPUs that shared the budget.
    pub devices: Vec<BudgetedDevice>,
    /// Every budget, with the time at which it was given.
    pub budgets: Vec<BudgetAt>,
    /// Power, budget and caps over time.
    pub over_time: Vec<BudgetSlice>,
    /// The messages that were shown, with their times.
    pub notices: Vec<BudgetNotice>,
    /// The signal that ended the run, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether every GPU has its earlier settings again.
    pub restored: bool,
}

/// Whose power a budget limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BudgetOf {
    /// That of all GPUs together.
    Gpus,
    /// That of the whole machine, at its meter.
    Node,
}

/// The power of the whole machine, as its meter shows it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BudgetNode {
    /// The names of the meters.
    pub meter: String,
    /// The mean power, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_power_w: Option<f64>,
    /// The highest mean power of a second, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_mean_w: Option<f64>,
    /// The time in which the meter showed nothing, in seconds.
    pub unread_s: f64,
}

/// A GPU that shared the budget.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BudgetedDevice {
    /// The index of the GPU.
    pub index: u32,
    /// The UUID of the GPU.
    pub uuid: String,
    /// The product name of the GPU.
    pub name: String,
    /// Whether the power cap of the GPU could be set.
    pub settable: bool,
    /// The power cap before, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier_cap_w: Option<f64>,
    /// The last power cap of the budget, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap_w: Option<f64>,
    /// The mean power, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_power_w: Option<f64>,
    /// The energy in joules, from power readings; absent if they miss more than 1 % of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The time without power readings, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread_s: Option<f64>,
    /// The share of the time in which a program used the GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// The items that programs reported; the GPUs of a job have equal parts of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<f64>,
}

/// A budget and when it was given.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BudgetAt {
    /// When the budget was given, in seconds.
    pub at_s: f64,
    /// The budget, in watts.
    pub budget_w: f64,
}

/// A part of the time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BudgetSlice {
    /// The end of the part, in seconds.
    pub at_s: f64,
    /// The budget, in watts.
    pub budget_w: f64,
    /// The mean power of all GPUs together in watts; absent if that of one was unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// The mean power of the whole machine in watts, if the budget is for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_power_w: Option<f64>,
    /// What the rest of the machine left for the GPUs in watts, if the budget is for the whole machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_budget_w: Option<f64>,
    /// The power caps in watts, in the order of `devices`.
    pub caps_w: Vec<f64>,
}

/// A message and when it was shown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BudgetNotice {
    /// When the message was shown, in seconds.
    pub at_s: f64,
    /// The message.
    pub message: String,
}
