//! How far the simulator is from published and measured values.

use sweetspot_papers::{Column, DeviationKind, SimulatorDeviations};

use crate::table::Table;

/// Makes a summary and tables for each study.
pub fn deviations_text(studies: &[SimulatorDeviations], markdown: bool) -> String {
    let mut parts = Vec::new();
    for study in studies {
        parts.push(summary(study));
        for table in &study.tables {
            let rows = deviations_table(table);
            let drawn = if markdown {
                rows.to_markdown()
            } else {
                rows.to_terminal()
            };
            parts.push(format!("{}\n\n{drawn}\n", table.title));
        }
    }
    parts.join("\n")
}

/// Makes one line for each study: its number of parameters and of values within their tolerance.
pub fn deviations_summary(studies: &[SimulatorDeviations]) -> String {
    studies.iter().map(summary).collect()
}

/// The line of one study: its numbers of parameters and values, and how many are within tolerance.
fn summary(study: &SimulatorDeviations) -> String {
    let (met, judged) = study.count_met();
    format!(
        "{}: {} free parameters, {} different values; {met} of {judged} within tolerance\n",
        study.study, study.free_parameters, study.values,
    )
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
    let mut rows = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
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
