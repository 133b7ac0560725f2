//! A published study on the user's own GPUs: published, simulated and measured side by side.

use maud::{Markup, html};
use sweetspot_document::common::SchemaName;
use sweetspot_document::reproduce_on_gpu as document;
use sweetspot_papers::{OwnBest, OwnChange, OwnComparison, OwnRow};
use sweetspot_study::Study;

use crate::html::table as html_table;
use crate::table::Table;
use crate::text::{Line, Role, Text};

/// Makes the text for a terminal.
pub fn own_reproduction_text(own: &OwnComparison, notes: &[String]) -> Text {
    let title = Line::with_role_of(Role::Heading, title(own));
    let mut parts: Vec<Text> = vec![title.into(), own.source.into()];
    parts.extend(tables(own).into_iter().map(Text::from));
    parts.push(MEANING.into());
    parts.extend(describe_changed_profiles(own).map(Text::from));
    if !notes.is_empty() {
        parts.push(format!("Not as in the paper: {}.", notes.join("; ")).into());
    }
    Text::from_parts(parts)
}

/// Makes the Markdown document.
pub fn own_reproduction_markdown(own: &OwnComparison, notes: &[String]) -> String {
    own_reproduction_text(own, notes).to_markdown()
}

/// What the columns mean.
const MEANING: &str = "Each column is compared with the default setting of its own GPU (of batch sizes: with one GPU and the smallest batch). Published and simulated values are of the paper's GPU and network, measured ones of your GPU and program: another program has another best setting.";

/// Says that the simulated values come from profiles that somebody has changed; nothing if all are as they were fitted.
fn describe_changed_profiles(own: &OwnComparison) -> Option<String> {
    let changed = &own.changed_profiles;
    (!changed.is_empty()).then(|| {
        format!(
            "Changed profiles: {}; simulated values come from them, and not from the profiles that were fitted to the paper.",
            changed.join(", ")
        )
    })
}

/// The title of the comparison.
fn title(own: &OwnComparison) -> String {
    format!(
        "{} on this GPU: {} on {} beside your program",
        own.origin.paper, own.origin.network, own.origin.gpu
    )
}

/// The heading of the varied quantity.
fn quantity(own: &OwnComparison) -> &'static str {
    match own.quantity {
        "power_cap_w" => "cap\n[W]",
        "core_clock_mhz" => "clock\n[MHz]",
        _ => "batch\n",
    }
}

/// Makes the tables: of all settings, and of the best ones.
fn tables(own: &OwnComparison) -> [Table; 2] {
    let name = quantity(own);
    let (paper, here) = (format!("Paper's {name}"), format!("Your {name}"));
    let mut rows = Table::new(&[
        "GPUs",
        &paper,
        &here,
        "Published\nenergy, time [%]",
        "Simulated\nenergy, time [%]",
        "Measured\nenergy, time [%]",
    ]);
    for row in &own.rows {
        let mut cells = vec![
            row.gpus.to_string(),
            format!("{:.0}", row.paper_value),
            format!("{:.0}", row.own_value),
        ];
        cells.extend([row.published, row.simulated, row.measured].map(change_text));
        rows.push(cells);
    }
    let mut best = Table::new(&["GPUs", "Metric", "Published", "Simulated", "Measured"]);
    for one in &own.best {
        best.push(vec![
            one.gpus.to_string(),
            one.metric.to_string(),
            gain_text(one.published, own),
            gain_text(one.simulated.map(|(value, gain)| (Some(value), gain)), own),
            gain_text(one.measured.map(|(value, gain)| (Some(value), gain)), own),
        ]);
    }
    [rows, best]
}

/// Formats the changes of energy and time in per cent.
fn change_text(change: Option<OwnChange>) -> String {
    let percent = |part: Option<f64>| {
        part.map_or_else(|| "-".to_owned(), |part| format!("{:+.1}", 100.0 * part))
    };
    change.map_or_else(
        || "-".to_owned(),
        |change| format!("{}, {}", percent(change.energy), percent(change.time)),
    )
}

/// Formats a best setting and its gain.
fn gain_text(best: Option<(Option<f64>, f64)>, own: &OwnComparison) -> String {
    let unit = match own.quantity {
        "power_cap_w" => " W",
        "core_clock_mhz" => " MHz",
        _ => "",
    };
    match best {
        None => "-".to_owned(),
        Some((Some(value), gain)) => format!("{:.1} % at {value:.0}{unit}", 100.0 * gain),
        Some((None, gain)) => format!("{:.1} %", 100.0 * gain),
    }
}

/// Makes the part of a study's HTML page.
pub(crate) fn own_reproduction_html(own: &OwnComparison) -> Markup {
    html! {
        h2 #reproduction { (title(own)) }
        div.card {
            p { (own.source) }
            @for rows in tables(own) { div.scroll { (html_table(&rows)) } }
            p.note { (MEANING) }
            @if let Some(changed) = describe_changed_profiles(own) { p.note { (changed) } }
        }
    }
}

/// Makes the JSON document.
pub fn own_reproduction_json(
    own: &OwnComparison,
    study: &Study,
    notes: &[String],
    folder: Option<String>,
) -> document::ReproductionOnGpu {
    document::ReproductionOnGpu {
        schema: SchemaName::REPRODUCE_ON_GPU,
        paper: own.origin.paper.clone(),
        source: own.source.to_owned(),
        network: own.origin.network.clone(),
        paper_gpu: own.origin.gpu.clone(),
        device: study.device().name.clone(),
        command: study.subject.workload.command.clone().unwrap_or_default(),
        energy_of: study.energy_of().to_string(),
        repeat: study.plan.repeat,
        quantity: own.quantity.to_owned(),
        rows: own.rows.iter().map(row_json).collect(),
        best: own.best.iter().map(best_json).collect(),
        notes: notes.to_vec(),
        changed_profiles: own.changed_profiles.clone(),
        study: folder,
    }
}

/// Makes the entry of one setting.
fn row_json(row: &OwnRow) -> document::OwnRow {
    let entry = |change: OwnChange| document::OwnChange {
        time: change.time,
        energy: change.energy,
    };
    document::OwnRow {
        gpus: row.gpus,
        paper_value: row.paper_value,
        own_value: row.own_value,
        published: row.published.map(entry),
        simulated: row.simulated.map(entry),
        measured: row.measured.map(entry),
    }
}

/// Makes the entry of a best setting.
fn best_json(best: &OwnBest) -> document::OwnBest {
    let entry = |(value, gain)| document::OwnGain {
        value: Some(value),
        gain,
    };
    document::OwnBest {
        gpus: best.gpus,
        metric: best.metric.to_string(),
        published: best
            .published
            .map(|(value, gain)| document::OwnGain { value, gain }),
        simulated: best.simulated.map(entry),
        measured: best.measured.map(entry),
    }
}
