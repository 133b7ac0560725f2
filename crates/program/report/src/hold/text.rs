//! The result of `sweetspot hold`, for a terminal.

use sweetspot_control::hold::{CapOn, HoldSetting};
use sweetspot_guard::CommandExit;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_session::hold::HoldResult;

use super::gpus::{gpu_names, gpu_rows};
use crate::measure::one_line;
use crate::table::Table;
use crate::text::{Line, Role, Text};

/// Describes a setting: `batch 16, 1200 MHz`.
pub fn setting_text(setting: &HoldSetting) -> String {
    let clock = setting.core_clock.map(|clock| format!(", {clock:.0}"));
    let cap = setting.power_cap.map(|cap| format!(", capped at {cap:.0}"));
    let (clock, cap) = (clock.unwrap_or_default(), cap.unwrap_or_default());
    format!("batch {}{clock}{cap}", setting.batch)
}

/// Formats a latency in milliseconds.
pub fn latency_text(time: Seconds) -> String {
    format!("{:.1} ms", 1e3 * time.get())
}

/// Makes the text that `sweetspot hold` prints on a terminal.
pub fn hold_text(result: &HoldResult) -> Text {
    let ended = match result.ended {
        CommandExit::Code(code) => format!("exit code {code}"),
        CommandExit::Signal(signal) => format!("ended by signal {signal}"),
    };
    let title = format!(
        "{}: {:.3}, {ended}",
        one_line(&result.command),
        result.run_time
    );
    let mut parts: Vec<Text> = vec![title.into()];
    if result.summary.items == 0 {
        parts.push(
            "your program reported no batch of a requested size: power and throughput are unknown"
                .into(),
        );
    } else {
        parts.push(rows(result).into());
        let gpus = gpu_rows(result);
        if !gpus.is_empty() {
            parts.push(gpus.into());
        }
    }
    if let Some(unused) = result.unused {
        parts.push(Line::new(unused.to_string()).into());
    }
    let role = match result.verdict.is_met() {
        Some(true) => Role::Good,
        Some(false) => Role::Bad,
        None => Role::Warning,
    };
    parts.push(Line::with_role_of(role, result.verdict.to_string()).into());
    Text::from_parts(parts)
}

/// Makes the table of results.
fn rows(result: &HoldResult) -> Table {
    let summary = &result.summary;
    let caps: Vec<String> = result
        .caps
        .iter()
        .map(|(_, cap)| format!("{:.1} W", cap.get()))
        .collect();
    let caps = match caps.as_slice() {
        [one] => one.clone(),
        all if all.len() <= 4 => all.join(", then "),
        all => format!("{} caps, {} at the end", all.len(), all[all.len() - 1]),
    };
    let mut rows = Table::new(&[&format!("{}, held below {caps}", gpu_names(result)), ""]);
    let mut add = |what: &str, value: Option<String>| {
        let value = value.unwrap_or_else(|| "unknown".to_owned());
        rows.push(vec![what.to_owned(), value]);
    };
    let settled = result.settled_items_per_s;
    add(
        "items a second",
        Some(format!("{:.1}", summary.items_per_s)),
    );
    add("  after settling", settled.map(|rate| format!("{rate:.1}")));
    add(
        "energy per item",
        energy_per_item(result).map(|joules| format!("{joules:.4} J")),
    );
    let percent = |share: Option<sweetspot_quantity::Ratio>| {
        share.map(|share| format!("{:.2} %", 100.0 * share.get()))
    };
    let bound = result.cap_on.noun();
    let bounds = match result.cap_on {
        CapOn::Mean(_) => bound.clone(),
        CapOn::Reading => "readings".to_owned(),
    };
    add(
        &format!("{bounds} above the cap"),
        percent(summary.violation_share),
    );
    add(&format!("  highest {bound}"), watts(summary.largest_mean));
    if let Some(highest) = summary.settling_largest {
        let excess = summary.settling_excess;
        add(
            "  while settling",
            Some(format!("{excess:.1} above, up to {highest:.1}")),
        );
    }
    if summary.fine_share.is_some() && result.cap_on != CapOn::Reading {
        add("single readings above it", percent(summary.fine_share));
        add("  99 of 100 are below", watts(summary.fine_p99));
        add("  highest reading", watts(summary.highest_sample));
    }
    let p99 = result.latency_p99.map(latency_text);
    match result.latency_bound {
        Some(bound) => add(
            &format!("p99 latency, at most {}", latency_text(bound)),
            p99,
        ),
        None => add("p99 latency", p99),
    }
    add(
        "settled after",
        summary.settle_time.map(|time| {
            let windows = summary.settle_windows.unwrap_or(0);
            format!("{time:.1} ({windows} windows)")
        }),
    );
    add("changes", Some(summary.changes.to_string()));
    add(
        "average batch",
        summary.average_batch.map(|size| format!("{size:.1}")),
    );
    add(
        "at the end",
        result.settings.last().map(|(_, setting)| {
            let together = match setting.power_cap.filter(|_| result.gpus.len() > 1) {
                Some(_) => " together",
                None => "",
            };
            format!("{}{together}", setting_text(setting))
        }),
    );
    rows
}

/// Formats a power; `None` if it is unknown.
fn watts(power: Option<Watts>) -> Option<String> {
    power.map(|power| format!("{:.1} W", power.get()))
}

/// Returns the energy of an item in joules; `None` if the energy or the items are unknown.
pub fn energy_per_item(result: &HoldResult) -> Option<f64> {
    let energy = result.energy?;
    let items = result.summary.items as f64;
    (items > 0.0).then(|| energy.value.get() / items)
}
