//! The messages for the user about a budgeter's notices.

use sweetspot_control::budget::BudgetNotice;
use sweetspot_quantity::Watts;

/// The message for the user about a notice; `names` are the names of the GPUs, and `node` is the budget of the whole
/// machine, if there is one.
pub fn notice_message(notice: &BudgetNotice, names: &[String], node: Option<Watts>) -> String {
    match (notice, node) {
        (BudgetNotice::BelowFloor { budget, .. }, Some(node)) => format!(
            "the budget of {:.0} W leaves only {:.0} W for the GPUs: they {}",
            node.get(),
            budget.get(),
            needs(notice)
        ),
        (BudgetNotice::Feasible { budget }, Some(node)) => format!(
            "the budget of {:.0} W leaves enough for the GPUs again: {:.0} W",
            node.get(),
            budget.get()
        ),
        (BudgetNotice::BelowFloor { budget, .. }, None) => format!(
            "the budget of {:.0} W cannot be kept: the GPUs {}",
            budget.get(),
            needs(notice)
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

/// What the GPUs take at least, and what to do about it.
fn needs(notice: &BudgetNotice) -> String {
    let BudgetNotice::BelowFloor {
        floor,
        uncapped,
        has_floors,
        ..
    } = notice
    else {
        return String::new();
    };
    let lower = if *has_floors {
        " lower the floors,"
    } else {
        ""
    };
    let advice = format!("give a higher budget,{lower} or end programs");
    match *uncapped > Watts::ZERO {
        true => format!(
            "need {:.0} W, of which {:.0} W go to GPUs whose power cap this budget cannot set; the others have their lowest power caps now; {advice}",
            floor.get(),
            uncapped.get()
        ),
        false => format!(
            "need {:.0} W even at their lowest power caps, which are set now; {advice}",
            floor.get()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_gpus_that_cannot_be_capped_and_floors_only_where_they_are() {
        let notice = |uncapped: f64, has_floors: bool| {
            let notice = BudgetNotice::BelowFloor {
                budget: Watts::new(360.0),
                floor: Watts::new(410.0),
                uncapped: Watts::new(uncapped),
                has_floors,
            };
            notice_message(&notice, &[], None)
        };
        let plain = notice(0.0, false);
        assert!(
            plain.contains("410 W even at their lowest power caps"),
            "{plain}"
        );
        assert!(!plain.contains("floors"), "{plain}");
        let uncapped = notice(260.0, true);
        assert!(
            uncapped.contains("260 W go to GPUs whose power cap"),
            "{uncapped}"
        );
        assert!(uncapped.contains("lower the floors"), "{uncapped}");
    }
}
