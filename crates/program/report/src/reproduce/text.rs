//! A published study beside its reproduction, for a terminal and as Markdown.

use sweetspot_papers::{CountedTolerance, Label, ReproducedRow, Reproduction, ValueOrigin};

use crate::simulate::{describe_changed_profiles, describe_few_values, describe_not_held_out};
use crate::table::Table;
use crate::text::{Line, Role, Text};

/// Makes the text for a terminal: every row, then the tolerances and the conclusions.
pub fn reproduction_text(study: &Reproduction) -> Text {
    let mut parts: Vec<Text> = vec![heading(study).into()];
    parts.extend(tables(study));
    parts.push(summary(study));
    Text::from_parts(parts)
}

/// Makes the short text: the tolerances, the conclusions, and each row outside its tolerance.
pub fn reproduction_summary(study: &Reproduction) -> Text {
    Text::from_parts([heading(study).into(), summary(study)])
}

/// Makes the Markdown document of `sweetspot reproduce`.
pub fn reproduction_markdown(study: &Reproduction) -> String {
    let title = Text::from(format!("# {}", study.paper));
    Text::from_parts([title, reproduction_text(study)]).to_markdown()
}

/// The first lines: the paper, and the number of sweeps and runs.
fn heading(study: &Reproduction) -> String {
    let runs = &study.runs;
    format!(
        "{}\nrun again on simulated GPUs: {} sweeps, {} configurations, {} runs, seed {}",
        study.source, runs.studies, runs.configurations, runs.runs, runs.seed
    )
}

/// Makes every table with its name and notes.
fn tables(study: &Reproduction) -> Vec<Text> {
    let mut names: Vec<&str> = Vec::new();
    for row in &study.rows {
        if !names.contains(&row.table.as_str()) {
            names.push(&row.table);
        }
    }
    let of = |name: &&str| {
        let rows: Vec<&ReproducedRow> =
            study.rows.iter().filter(|row| row.table == *name).collect();
        table(name, &rows)
    };
    names.iter().map(of).collect()
}

/// Makes one table with its name and notes.
fn table(name: &str, rows: &[&ReproducedRow]) -> Text {
    let mut drawn = Table::new(&[
        "Row",
        "Value",
        "Published",
        "Here",
        "Deviation",
        "Within",
        "",
    ])
    .with_text_columns(2)
    .with_key_columns(2)
    .with_column_roles(&[5], within_role);
    let mut notes: Vec<&str> = Vec::new();
    let mut before = String::new();
    let common = common(rows);
    for row in rows {
        let label = row_label(row, &common);
        let shown = if label == before { "" } else { &label };
        let note = match row.note.as_deref() {
            None => String::new(),
            Some(note) => {
                let known = notes.iter().position(|known| *known == note);
                let place = known.unwrap_or_else(|| {
                    notes.push(note);
                    notes.len() - 1
                });
                format!("({})", place + 1)
            }
        };
        drawn.push(vec![
            shown.to_owned(),
            row.kind.words.to_owned(),
            number(row, row.published),
            number(row, row.reproduced),
            deviation_text(row).unwrap_or_default(),
            within(row),
            note,
        ]);
        before = label;
    }
    let mut title = [
        vec![table_name(name)],
        common.into_iter().map(|(_, text)| text).collect(),
    ]
    .concat()
    .join(", ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let title = Line::with_role_of(Role::Heading, title);
    let mut parts: Vec<Text> = vec![title.into(), drawn.into()];
    if !notes.is_empty() {
        let notes = notes.iter().enumerate();
        let notes = notes.map(|(place, note)| Line::new(format!("({}) {note}", place + 1)));
        parts.push(notes.collect());
    }
    Text::from_parts(parts)
}

/// Names a table. Names that begin with a small letter are sections, figures or the text and stay as they are.
fn table_name(name: &str) -> String {
    match name.starts_with(|first: char| first.is_ascii_lowercase()) {
        true => name.to_owned(),
        false => format!("table {name}"),
    }
}

/// Returns the labels that identify a row, such as the network and the batch size, each as name and text.
fn labels(row: &ReproducedRow) -> Vec<(&'static str, String)> {
    let text = |name: &str, label: &Label| match (name, label) {
        ("power_cap_w", Label::Number(watts)) => format!("{watts} W"),
        ("batch", Label::Number(batch)) => format!("batch {batch}"),
        ("job", Label::Number(job)) => format!("job {job}"),
        ("time_s", Label::Number(time)) => format!("{time} s"),
        ("gpus", Label::Number(count)) => match count {
            1.0 => "1 GPU".to_owned(),
            _ => format!("{count} GPUs"),
        },
        (_, label) => label.to_string(),
    };
    let row = row.row.iter();
    row.map(|(name, label)| (*name, text(name, label)))
        .collect()
}

/// Returns the labels that all rows of a table have in common; they go into the table's title.
fn common(rows: &[&ReproducedRow]) -> Vec<(&'static str, String)> {
    let Some(first) = rows.first() else {
        return Vec::new();
    };
    let mut common = labels(first);
    for row in rows {
        let own = labels(row);
        // A row with a single label keeps it.
        if own.len() > 1 {
            common.retain(|piece| own.contains(piece));
        } else {
            common.clear();
        }
    }
    common
}

/// Returns the text of a row's labels that are not in the table's title.
pub(super) fn row_label(row: &ReproducedRow, common: &[(&'static str, String)]) -> String {
    let own = labels(row);
    let own = own.into_iter().filter(|piece| !common.contains(piece));
    own.map(|(_, text)| text).collect::<Vec<_>>().join(" ")
}

/// Formats a value in the unit of the table.
fn number(row: &ReproducedRow, value: Option<f64>) -> String {
    let digits = row.kind.digits;
    let known = value.map(|value| format!("{:.digits$}", value * row.kind.scale));
    known.unwrap_or_else(|| "-".to_owned())
}

/// Formats the deviation of a row; `None` if a value is missing.
fn deviation_text(row: &ReproducedRow) -> Option<String> {
    let (deviation, digits) = (row.deviation()?, row.kind.digits);
    Some(match row.kind.relative {
        true => format!("{:+.1} %", 100.0 * deviation),
        false => format!("{:+.digits$}", deviation * row.kind.scale),
    })
}

/// The text that says whether a value is within its tolerance.
const fn mark(within: bool) -> &'static str {
    if within { "yes" } else { "NO" }
}

/// The cell that says whether a row is within its tolerance, and whether it is a prediction; empty without either.
fn within(row: &ReproducedRow) -> String {
    let mark = row.is_within_tolerance().map(mark);
    let origin = row.origin.map(ValueOrigin::name);
    let parts = [mark, origin].into_iter().flatten();
    parts.collect::<Vec<_>>().join(", ")
}

/// The role of a cell that says whether a row is within its tolerance.
fn within_role(cell: &str) -> Role {
    match cell.starts_with("NO") {
        true => Role::Bad,
        false => Role::Plain,
    }
}

/// Says which tolerances are met and which conclusions hold.
fn summary(study: &Reproduction) -> Text {
    let (met, judged) = study.count_met();
    let mut lines = vec![format!(
        "{met} of {judged} judged values are within their tolerance."
    )];
    lines.extend(describe_origins(study));
    lines.extend(describe_fit(study));
    for row in &study.rows {
        if row.must_hold() && row.is_within_tolerance() == Some(false) {
            lines.push(format!(
                "  not within: {}, {}, {}: published {}, here {}",
                table_name(&row.table),
                row_label(row, &[]),
                row.kind.words,
                number(row, row.published),
                number(row, row.reproduced)
            ));
        }
    }
    lines.extend(
        study
            .counted_tolerances
            .iter()
            .map(describe_counted_tolerance),
    );
    let faults = study
        .rows
        .iter()
        .filter(|row| has_error_in_paper(row))
        .count();
    if faults > 0 {
        lines.push(format!(
            "{faults} printed values contradict others in the paper; a note at each row says how."
        ));
    }
    lines.push(String::new());
    let failed = study.failed_conclusions().count();
    if failed > 0 {
        lines.push(format!(
            "{failed} of {} conclusions do not hold.",
            study.conclusions.len()
        ));
    }
    for conclusion in &study.conclusions {
        let verdict = match conclusion.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "not known yet",
        };
        lines.push(format!(
            "{verdict}: {}\n  here: {}",
            conclusion.what, conclusion.here
        ));
    }
    if !study.not_reproduced.is_empty() {
        lines.push(String::new());
        lines.extend(
            study
                .not_reproduced
                .iter()
                .map(|what| format!("Not reproduced yet: {what}")),
        );
    }
    let text = lines.join("\n");
    text.lines().map(verdict_line).collect()
}

/// Says how many printed values are predictions, and how many were used to make the simulation; nothing if no origin is
/// stated.
fn describe_origins(study: &Reproduction) -> Option<String> {
    let counts = study.count_origins().to_string();
    (!counts.is_empty()).then(|| format!("Printed values: {counts}."))
}

/// Says how many parameters were fitted to how many values, and how far predictions of held-out values are off; nothing
/// if it is not stated.
fn describe_fit(study: &Reproduction) -> Vec<String> {
    let Some(fit) = &study.fit else {
        return Vec::new();
    };
    let parameters = describe_parameters(fit.free_parameters, fit.by_hand, fit.values);
    let mut lines = vec![format!("{parameters}.")];
    lines.extend(describe_few_values(fit.free_parameters, fit.values));
    let held_out = fit.held_out.iter();
    lines.extend(held_out.map(|held_out| format!("  held out: {held_out}")));
    lines.extend(describe_not_held_out(fit.not_held_out));
    lines.extend(describe_changed_profiles(&fit.changed_profiles));
    for form in &fit.forms {
        let values = form.values.count();
        lines.push(format!(
            "  {} (simulate --errors {}): {}; {}",
            form.what,
            form.name,
            describe_parameters(form.free_parameters, form.by_hand, values),
            form.values.errors()
        ));
        let held_out = form.held_out.iter();
        lines.extend(held_out.map(|held_out| format!("    held out: {held_out}")));
    }
    lines
}

/// Says how many parameters there are for how many values, and where they come from.
fn describe_parameters(free: usize, by_hand: usize, values: usize) -> String {
    let (parameters, were) = match free {
        1 => ("1 free parameter".to_owned(), "was"),
        free => (format!("{free} free parameters"), "were"),
    };
    match by_hand {
        0 => format!("{parameters} {were} fitted to {values} independent values"),
        all if all == free => {
            format!("{parameters} {were} chosen by hand with {values} independent values in view")
        }
        some => {
            format!(
                "{parameters}, {some} of them chosen by hand, were fitted to {values} independent values"
            )
        }
    }
}

/// A line of the summary, whose first words may say whether a conclusion holds.
fn verdict_line(line: &str) -> Line {
    let role = match line.split_once(':').map(|(verdict, _)| verdict) {
        Some("holds") => Role::Good,
        Some("does not hold" | "  not within") => Role::Bad,
        Some("not known yet" | "Not reproduced yet") => Role::Warning,
        _ => Role::Plain,
    };
    Line::with_introduction(role, line)
}

/// Says how many rows are within a tolerance, and how many rows must be.
fn describe_counted_tolerance(counted: &CountedTolerance) -> String {
    format!(
        "{} of {} ({} needed{}): {}",
        counted.met,
        counted.of,
        counted.needed,
        if counted.is_met() { "" } else { ", NOT met" },
        counted.what
    )
}

/// Whether the row's note says that the paper contains an error.
fn has_error_in_paper(row: &ReproducedRow) -> bool {
    let note = row.note.as_deref().unwrap_or_default();
    note.starts_with("error in ")
}
