//! How far the simulator is from published and measured values.

use sweetspot_papers::{Column, DeviationKind, SimulatorDeviations, ValueOrigin};

use crate::table::Table;
use crate::text::{Line, Role, Text};

/// Makes a summary and tables for each study.
pub fn deviations_text(studies: &[SimulatorDeviations]) -> Text {
    let mut parts: Vec<Text> = Vec::new();
    for study in studies {
        parts.push(summary(study).into_iter().collect());
        for table in &study.tables {
            parts.push(Line::with_role_of(Role::Heading, &table.title).into());
            parts.push(deviations_table(table).into());
        }
        for held_out in &study.held_out {
            let title = format!("predicted by a fit without {}", held_out.without);
            for table in &held_out.tables {
                // The table's own heading has explanations after a colon.
                let table_name = table.title.split(':').next().unwrap_or_default();
                let title = format!("{title}: {table_name}");
                parts.push(Line::with_role_of(Role::Heading, title).into());
                parts.push(deviations_table(table).into());
            }
        }
    }
    Text::from_parts(parts)
}

/// Makes one line for each study: its number of parameters and of values within their tolerance.
pub fn deviations_summary(studies: &[SimulatorDeviations]) -> Text {
    studies.iter().flat_map(summary).collect()
}

/// The lines of one study: its numbers of parameters and values, how many are within tolerance, and how many are
/// predicted if that is stated.
fn summary(study: &SimulatorDeviations) -> Vec<Line> {
    let (met, judged) = study.count_met();
    let mut lines = vec![Line::new(format!(
        "{}: {} free parameter{}, {} different values; {met} of {judged} within tolerance",
        study.study,
        study.free_parameters,
        if study.free_parameters == 1 { "" } else { "s" },
        study.values,
    ))];
    if study.by_hand > 0 {
        lines.push(Line::new(format!(
            "  {} of the parameters chosen by hand",
            study.by_hand
        )));
    }
    lines.extend(describe_few_values(study.free_parameters, study.values).map(Line::new));
    let origins = study.count_origins().to_string();
    if !origins.is_empty() {
        lines.push(Line::new(format!("  {origins}")));
    }
    let held_out = study.held_out.iter();
    lines.extend(held_out.map(|held_out| Line::new(format!("  held out: {held_out}"))));
    lines.extend(describe_not_held_out(study.not_held_out).map(Line::new));
    lines.extend(describe_changed_profiles(&study.changed_profiles).map(Line::new));
    lines
}

/// Says how many fitted values have no held-out error; nothing if all have one.
pub fn describe_not_held_out(count: usize) -> Option<String> {
    let values = if count == 1 { "value" } else { "values" };
    (count > 0).then(|| {
        format!("  not held out: {count} fitted {values}, because no fits without them are stored")
    })
}

/// Says that there are more parameters than half of the values; nothing if there are not.
pub fn describe_few_values(free_parameters: usize, values: usize) -> Option<String> {
    (2 * free_parameters > values).then(|| {
        "  more parameters than half of the values: that they agree would prove little".to_owned()
    })
}

/// Says which profiles are not as they were fitted; nothing if all are.
pub fn describe_changed_profiles(changed: &[String]) -> Option<String> {
    (!changed.is_empty()).then(|| {
        format!(
            "  changed profiles: {}; they are not as they were fitted, so that held-out errors are unknown",
            changed.join(", ")
        )
    })
}

/// Makes a table of published and simulated values.
fn deviations_table(table: &sweetspot_papers::Table) -> Table {
    let mut headings = vec!["".to_owned()];
    for column in &table.columns {
        headings.push(format!("Theirs\n[{}]", column.unit));
        headings.push(format!("Here\n[{}]", column.unit));
        headings.push(match column.deviation_kind {
            DeviationKind::Relative => "off\n[%]".to_owned(),
            DeviationKind::Difference => "off".to_owned(),
        });
    }
    let off: Vec<usize> = (1..=table.columns.len()).map(|column| 3 * column).collect();
    let mut rows = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>())
        .with_column_roles(&off, deviation_role);
    for (label, values) in &table.rows {
        let mut row = vec![label.clone()];
        for (value, column) in values.iter().zip(&table.columns) {
            let digits = column.digits;
            row.push(format!("{:.digits$}", value.published));
            row.push(format!("{:.digits$}", value.here));
            row.push(deviation_cell(value, column));
        }
        rows.push(row);
    }
    rows
}

/// The role of a deviation.
fn deviation_role(cell: &str) -> Role {
    match cell.ends_with('!') {
        true => Role::Bad,
        false => Role::Plain,
    }
}

/// Formats a deviation and the origin of its value: with `!` if it exceeds its tolerance, in brackets if the published
/// value is unreliable.
fn deviation_cell(value: &sweetspot_papers::Value, column: &Column) -> String {
    let digits = column.digits;
    let off = match column.deviation_kind {
        DeviationKind::Relative => {
            format!("{:+.2}", 100.0 * value.deviation(DeviationKind::Relative))
        }
        DeviationKind::Difference => {
            format!("{:+.digits$}", value.deviation(DeviationKind::Difference))
        }
    };
    let off = match value.origin {
        // An input cannot deviate.
        Some(ValueOrigin::Input) => return ValueOrigin::Input.to_string(),
        Some(origin) => format!("{off} {origin}"),
        None => off,
    };
    match (value.tolerance, value.is_met(column.deviation_kind)) {
        (None, _) => format!("({off})"),
        (_, true) => off,
        (_, false) => format!("{off} !"),
    }
}
