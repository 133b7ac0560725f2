//! The result of a budget, and its status while it runs.

use sweetspot_device::Descriptor;
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use crate::measure::Machine;

/// The largest share of time above the budget that counts as kept.
const ALLOWED_SHARE: f64 = 0.005;

/// The result of a run of `budget`. Times count from its start.
#[derive(Clone, Debug)]
pub struct BudgetResult {
    /// The computer with the GPUs.
    pub machine: Machine,
    /// The GPUs that shared the budget.
    pub gpus: Vec<BudgetedGpuResult>,
    /// Every budget, including the first, with the time at which it was given.
    pub budgets: Vec<(Seconds, Watts)>,
    /// How long the budget was kept.
    pub time: Seconds,
    /// The power of the whole machine, if the budget was for it.
    pub node: Option<NodeBudgetResult>,
    /// The share of time in which the mean of a second was above what the GPUs were given; `None` if it was kept for less
    /// than a second.
    pub above_share: Option<Ratio>,
    /// The mean power of all GPUs together.
    pub mean_power: Option<Watts>,
    /// The highest mean of a second of all GPUs together.
    pub highest_mean: Option<Watts>,
    /// The share that the GPUs used of what they were given.
    pub used_share: Option<Ratio>,
    /// The energy of all GPUs together, from their power readings.
    pub energy: Joules,
    /// The number of power caps that were set.
    pub changes: u64,
    /// Power, budget and caps over time.
    pub over_time: Vec<BudgetSlice>,
    /// The messages that were shown to the user, with their times.
    pub notices: Vec<(Seconds, String)>,
    /// The signal that ended the run, if one did.
    pub signal: Option<i32>,
    /// Whether the earlier settings of every device were restored.
    pub restored: bool,
}

/// How a budget of the whole machine was kept, as its meter shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeBudgetResult {
    /// The names of the meters.
    pub meter: String,
    /// The share of time in which the mean of a second was above the budget; `None` if too little is known.
    pub above_share: Option<Ratio>,
    /// The mean power.
    pub mean_power: Option<Watts>,
    /// The highest mean of a second.
    pub highest_mean: Option<Watts>,
    /// The share of the budget that was used.
    pub used_share: Option<Ratio>,
    /// The time in which the meter showed nothing, which is not judged.
    pub unread: Seconds,
}

/// A GPU that shared a budget.
#[derive(Clone, Debug)]
pub struct BudgetedGpuResult {
    /// The index of the GPU.
    pub index: u32,
    /// The GPU.
    pub device: Descriptor,
    /// Whether its power cap could be set.
    pub is_settable: bool,
    /// The power cap before the budget.
    pub first_cap: Option<Watts>,
    /// The last power cap that the budget gave the GPU.
    pub cap: Option<Watts>,
    /// The mean power.
    pub mean_power: Option<Watts>,
    /// The share of time in which a program used the GPU.
    pub busy_share: Option<Ratio>,
    /// The items that programs reported, if they did.
    pub items: Option<f64>,
}

/// A part of the time of a budget.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetSlice {
    /// The end of the slice.
    pub at: Seconds,
    /// The budget.
    pub budget: Watts,
    /// The mean power of all GPUs together.
    pub power: Watts,
    /// The mean power of the whole machine and what it left for the GPUs, if the budget is for it.
    pub node: Option<(Watts, Watts)>,
    /// The power caps, in the order of the GPUs.
    pub caps: Vec<Watts>,
}

/// The present state of a budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetStatus {
    /// The time since the start.
    pub elapsed: Seconds,
    /// The budget.
    pub budget: Watts,
    /// The power that the budget limits: that of all GPUs together, or of the whole machine.
    pub power: Watts,
    /// The sum of the power caps.
    pub caps: Watts,
    /// The number of GPUs that programs use.
    pub busy: usize,
    /// The number of GPUs.
    pub gpus: usize,
}

impl BudgetResult {
    /// Whether the budget was kept; `None` if too little is known.
    pub fn is_met(&self) -> Option<bool> {
        self.violation_share()
            .map(|share| share.get() <= ALLOWED_SHARE)
    }

    /// The share of time above the budget, at the wall if the budget was for the whole machine.
    pub fn violation_share(&self) -> Option<Ratio> {
        match &self.node {
            Some(node) => node.above_share,
            None => self.above_share,
        }
    }

    /// The budget at the end.
    pub fn last_budget(&self) -> Option<Watts> {
        self.budgets.last().map(|(_, budget)| *budget)
    }
}
