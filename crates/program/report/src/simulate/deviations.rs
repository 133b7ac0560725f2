//! How far the simulator is from published and measured values.

use sweetspot_papers::{Column, DeviationKind, SimulatorDeviations};

use crate::table::Table;
use crate::text::{Line, Role, Text};

/// Makes a summary and tables for each study.
pub fn deviations_text(studies: &[SimulatorDeviations]) -> Text {
    let mut parts: Vec<Text> = Vec::new();
    for study in studies {
        parts.push(summary(study).into());
        for table in &study.tables {
            parts.push(Line::with_role_of(Role::Heading, &table.title).into());
            parts.push(deviations_table(table).into());
        }
    }
    Text::from_parts(parts)
}

/// Makes one line for each study: its number of parameters and of values within their tolerance.
pub fn deviations_summary(studies: &[SimulatorDeviations]) -> Text {
    studies.iter().map(summary).collect()
}

/// The line of one study: its numbers of parameters and values, and how many are within tolerance.
fn summary(study: &SimulatorDeviations) -> Line {
    let (met, judged) = study.count_met();
    Line::new(format!(
        "{}: {} free parameters, {} different values; {met} of {judged} within tolerance",
        study.study, study.free_parameters, study.values,
    ))
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

/// Formats a deviation: with `!` if it exceeds its tolerance, in brackets if the published value is unreliable.
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
    match (value.tolerance, value.is_met(column.deviation_kind)) {
        (None, _) => format!("({off})"),
        (_, true) => off,
        (_, false) => format!("{off} !"),
    }
}
