//! The result of `sweetspot budget`, for a terminal.

use sweetspot_quantity::Watts;
use sweetspot_session::budget::{BudgetResult, BudgetedGpuResult};

use crate::table::Table;
use crate::text::{Line, Role, Text};

/// Makes the text that `sweetspot budget` prints on a terminal.
pub fn budget_text(result: &BudgetResult) -> Text {
    let watts = |power: Option<Watts>| {
        power.map_or_else(
            || "unknown".to_owned(),
            |power| format!("{:.0} W", power.get()),
        )
    };
    let budgets = result.budgets.iter();
    let budgets: Vec<String> = budgets
        .map(|(_, one)| format!("{:.0} W", one.get()))
        .collect();
    let budgets = match budgets.as_slice() {
        all if all.len() <= 4 => all.join(", then "),
        all => format!("{} budgets, {} at the end", all.len(), all[all.len() - 1]),
    };
    let means = match &result.node {
        None => format!(
            "mean {}, highest second {}",
            watts(result.mean_power),
            watts(result.highest_mean)
        ),
        Some(node) => format!(
            "meter {} mean {}, highest second {}; GPUs mean {}, highest second {}",
            node.meter,
            watts(node.mean_power),
            watts(node.highest_mean),
            watts(result.mean_power),
            watts(result.highest_mean)
        ),
    };
    let of = result
        .node
        .as_ref()
        .map_or("", |_| " for the whole machine");
    let title = format!(
        "Budget of {budgets}{of}, kept for {:.1} s: {means}, {} caps set",
        result.time.get(),
        result.changes,
    );
    let mut table = Table::new(&["GPU", "", "cap", "mean power", "in use", "items"]);
    for gpu in &result.gpus {
        table.push(row(gpu));
    }
    let share = result
        .violation_share()
        .map_or(0.0, |share| 100.0 * share.get());
    let unread = unread_text(result);
    let (role, verdict) = match result.is_met() {
        Some(true) => (
            Role::Good,
            format!("The budget was kept: above it {share:.2} % of the time{unread}."),
        ),
        Some(false) => (
            Role::Bad,
            format!("The budget was not kept: above it {share:.2} % of the time{unread}."),
        ),
        None if result.lacks_readings() => (
            Role::Bad,
            format!("It is unknown whether the budget was kept{unread}."),
        ),
        None => (
            Role::Warning,
            "The time was too short to say whether the budget was kept.".to_owned(),
        ),
    };
    Text::from_parts(vec![
        title.into(),
        table.into(),
        Line::with_role_of(role, verdict).into(),
    ])
}

/// The time without power readings, if there was any.
fn unread_text(result: &BudgetResult) -> String {
    let unread = result.unread().get();
    match unread > 0.0 {
        true => format!(
            " (no power readings for {unread:.1} of {:.1} s)",
            result.time.get()
        ),
        false => String::new(),
    }
}

/// The row of a GPU.
fn row(gpu: &BudgetedGpuResult) -> Vec<String> {
    let watts = |power: Option<Watts>| power.map(|power| format!("{:.0} W", power.get()));
    let unknown = || "unknown".to_owned();
    vec![
        gpu.index.to_string(),
        gpu.device.name.clone(),
        match gpu.is_settable {
            true => watts(gpu.cap).unwrap_or_else(unknown),
            false => "not set".to_owned(),
        },
        watts(gpu.mean_power).unwrap_or_else(unknown),
        gpu.busy_share
            .map_or_else(unknown, |share| format!("{:.0} %", 100.0 * share.get())),
        gpu.items
            .map_or_else(|| "-".to_owned(), |items| format!("{items:.0}")),
    ]
}
