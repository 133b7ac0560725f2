//! The result of a budget, and its status while it runs.

use sweetspot_device::Descriptor;
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use crate::measure::Machine;

/// The largest share of time above the budget that counts as kept.
const ALLOWED_SHARE: f64 = 0.005;
/// The largest share of time without power readings with which there is a verdict and an energy.
const MAX_UNREAD_SHARE: f64 = 0.01;

/// Whether too little of a time is known, because there were no readings in a part of it.
pub(super) fn lacks_readings(unread: Seconds, time: Seconds) -> bool {
    unread > time * MAX_UNREAD_SHARE
}

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
    /// The time in which the power of at least one GPU was unknown.
    pub unread: Seconds,
    /// The mean power of all GPUs together; `None` if too little is known.
    pub mean_power: Option<Watts>,
    /// The highest mean of a second of all GPUs together.
    pub highest_mean: Option<Watts>,
    /// The share that the GPUs used of what they were given.
    pub used_share: Option<Ratio>,
    /// The energy of all GPUs together, from their power readings; `None` if too little is known.
    pub energy: Option<Joules>,
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
    /// The time in which the meter showed nothing.
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
    /// The energy; `None` if too little is known.
    pub energy: Option<Joules>,
    /// The mean power; `None` if too little is known.
    pub mean_power: Option<Watts>,
    /// The time without power readings.
    pub unread: Seconds,
    /// The share of time in which a program used the GPU.
    pub busy_share: Option<Ratio>,
    /// The items that programs reported, if they did; the GPUs of a job have equal parts of them.
    pub items: Option<f64>,
}

/// A part of the time of a budget.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetSlice {
    /// The end of the slice.
    pub at: Seconds,
    /// The budget.
    pub budget: Watts,
    /// The mean power of all GPUs together; `None` if that of one was unknown.
    pub power: Option<Watts>,
    /// The mean power of the whole machine, if the budget is for it and the meter showed it.
    pub node: Option<Watts>,
    /// What was left for the GPUs, if the budget is for the whole machine.
    pub left: Option<Watts>,
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
    /// The power that the budget limits: that of all GPUs together, or of the whole machine; `None` if it is unknown.
    pub power: Option<Watts>,
    /// The sum of the power caps.
    pub caps: Watts,
    /// The number of GPUs that programs use.
    pub busy: usize,
    /// The number of GPUs.
    pub gpus: usize,
}

impl BudgetResult {
    /// Whether the budget was kept; `None` if too little is known. Missing readings do not excuse those that show too much.
    pub fn is_met(&self) -> Option<bool> {
        let share = self.violation_share();
        match share.map(|share| share.get() <= ALLOWED_SHARE) {
            Some(true) | None if self.lacks_readings() => None,
            verdict => verdict,
        }
    }

    /// Whether there is no verdict because power readings are missing.
    pub fn lacks_readings(&self) -> bool {
        lacks_readings(self.unread(), self.time)
    }

    /// The time without readings of the power that the budget limits.
    pub fn unread(&self) -> Seconds {
        self.node.as_ref().map_or(self.unread, |node| node.unread)
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
