//! The messages for the user about a budgeter's notices.

use sweetspot_control::budget::BudgetNotice;
use sweetspot_quantity::Watts;

/// The message for the user about a notice; `names` are the names of the GPUs, and `node` is the budget of the whole
/// machine, if there is one.
pub fn notice_message(notice: &BudgetNotice, names: &[String], node: Option<Watts>) -> String {
    match (notice, node) {
        (BudgetNotice::BelowFloor { budget, floor }, Some(node)) => format!(
            "the budget of {:.0} W leaves only {:.0} W for the GPUs, which may take {:.0} W even at their lowest power caps, which are set now; give a higher budget, lower the floors, or end programs",
            node.get(),
            budget.get(),
            floor.get()
        ),
        (BudgetNotice::Feasible { budget }, Some(node)) => format!(
            "the budget of {:.0} W leaves enough for the GPUs again: {:.0} W",
            node.get(),
            budget.get()
        ),
        (BudgetNotice::BelowFloor { budget, floor }, None) => format!(
            "the budget of {:.0} W cannot be kept: the GPUs need {:.0} W even at their lowest power caps, which are set now; give a higher budget, lower the floors, or end programs",
            budget.get(),
            floor.get()
        ),
        (BudgetNotice::Feasible { budget }, None) => {
            format!("the budget of {:.0} W can be kept again", budget.get())
        }
        (BudgetNotice::AboveCap { gpu, power, cap }, _) => format!(
            "{} draws {:.0} W although its power cap is {:.0} W, because its clock cannot be lowered further: the other GPUs get less",
            names.get(*gpu).map_or("a GPU", String::as_str),
            power.get(),
            cap.get()
        ),
    }
}
