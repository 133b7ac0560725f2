//! The messages for the user about a budgeter's notices.

use sweetspot_control::budget::BudgetNotice;

/// The message for the user about a notice; `names` are the names of the GPUs.
pub fn notice_message(notice: &BudgetNotice, names: &[String]) -> String {
    match notice {
        BudgetNotice::BelowFloor { budget, floor } => format!(
            "the budget of {:.0} W cannot be kept: the GPUs need {:.0} W even at their lowest power caps, which are set now; give a higher budget, lower the floors, or end programs",
            budget.get(),
            floor.get()
        ),
        BudgetNotice::Feasible { budget } => {
            format!("the budget of {:.0} W can be kept again", budget.get())
        }
        BudgetNotice::AboveCap { gpu, power, cap } => format!(
            "{} draws {:.0} W although its power cap is {:.0} W, because its clock cannot be lowered further: the other GPUs get less",
            names.get(*gpu).map_or("a GPU", String::as_str),
            power.get(),
            cap.get()
        ),
    }
}
