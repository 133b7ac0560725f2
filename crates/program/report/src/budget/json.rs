//! The JSON document of `sweetspot budget`, `sweetspot.budget/1`.

use sweetspot_document::budget as document;
use sweetspot_document::common::SchemaName;
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_session::budget::{BudgetResult, BudgetedGpuResult};

use crate::measure::machine_json;

/// Makes the JSON document of a budget.
pub fn budget_json(result: &BudgetResult) -> document::Budget {
    let slices = result.over_time.iter();
    let notices = result.notices.iter();
    let budgets = result.budgets.iter();
    let used_share = match &result.node {
        Some(node) => node.used_share,
        None => result.used_share,
    };
    document::Budget {
        schema: SchemaName::BUDGET,
        machine: machine_json(&result.machine),
        of: match result.node {
            Some(_) => document::BudgetOf::Node,
            None => document::BudgetOf::Gpus,
        },
        budget_w: result.last_budget().map(Watts::get),
        time_s: result.time.get(),
        unread_s: positive(result.unread()),
        met: result.is_met(),
        violation_share: result.violation_share().map(|share| share.get()),
        mean_power_w: result.mean_power.map(Watts::get),
        largest_mean_w: result.highest_mean.map(Watts::get),
        node: result.node.as_ref().map(|node| document::BudgetNode {
            meter: node.meter.clone(),
            mean_power_w: node.mean_power.map(Watts::get),
            largest_mean_w: node.highest_mean.map(Watts::get),
            unread_s: node.unread.get(),
        }),
        used_share: used_share.map(|share| share.get()),
        energy_j: result.energy.map(Joules::get),
        changes: result.changes,
        devices: result.gpus.iter().map(device).collect(),
        budgets: budgets
            .map(|(at, budget)| document::BudgetAt {
                at_s: at.get(),
                budget_w: budget.get(),
            })
            .collect(),
        over_time: slices
            .map(|slice| document::BudgetSlice {
                at_s: slice.at.get(),
                budget_w: slice.budget.get(),
                power_w: slice.power.map(Watts::get),
                node_power_w: slice.node.map(Watts::get),
                gpu_budget_w: slice.left.map(Watts::get),
                caps_w: slice.caps.iter().map(|cap| cap.get()).collect(),
            })
            .collect(),
        notices: notices
            .map(|(at, message)| document::BudgetNotice {
                at_s: at.get(),
                message: message.clone(),
            })
            .collect(),
        signal: result.signal,
        restored: result.restored,
    }
}

/// A GPU of the budget.
fn device(gpu: &BudgetedGpuResult) -> document::BudgetedDevice {
    document::BudgetedDevice {
        index: gpu.index,
        uuid: gpu.device.id.to_string(),
        name: gpu.device.name.clone(),
        settable: gpu.is_settable,
        earlier_cap_w: gpu.first_cap.map(Watts::get),
        cap_w: gpu.cap.map(Watts::get),
        mean_power_w: gpu.mean_power.map(Watts::get),
        energy_j: gpu.energy.map(Joules::get),
        unread_s: positive(gpu.unread),
        busy_share: gpu.busy_share.map(|share| share.get()),
        items: gpu.items,
    }
}

/// A time in seconds, if there is any.
fn positive(time: Seconds) -> Option<f64> {
    (time > Seconds::ZERO).then(|| time.get())
}
