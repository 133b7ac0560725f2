//! `sweetspot report` for a terminal and as Markdown: the recommendation, the table, the ranges and the problems.

use std::collections::BTreeMap;

use sweetspot_decide::Criteria;
use sweetspot_study::Study;

use crate::analysis::answer::Answer;
use crate::analysis::choices::choices;
use crate::analysis::groups::GroupedMeans;
use crate::analysis::ranges::{BetterRanges, better_ranges};
use crate::analysis::view::StudyView;
use crate::settings::{axis_name, setting};
use crate::study::{RESULTS, results, rows, shortfalls, title};
use crate::table::Table;
use crate::wording::{TERMINAL_COLUMNS, wrap};

/// The number of rows of a long table that a terminal shows.
const MAX_ROWS: usize = 24;
/// The number of problems that are listed one by one.
const MAX_PROBLEMS: usize = 5;

/// Makes the text that `sweetspot report` prints on a terminal.
pub fn report_text(study: &Study, criteria: &Criteria, grouped: Option<&GroupedMeans>) -> String {
    let view = StudyView::new(study, criteria);
    let mut parts = vec![
        wrap(&title(study), 2),
        recommendation_text(&view),
        table(&view),
    ];
    if let Some(grouped) = grouped {
        parts.push(wrap(&grouped.sentence(&view), 2));
        parts.push(grouped.rows(&view, MAX_ROWS).to_terminal());
    }
    parts.extend(ranges(&view).map(|lines| lines.join("\n")));
    parts.extend(problems(&view));
    parts.join("\n\n") + "\n"
}

/// Makes the Markdown document of `sweetspot report`.
pub fn report_markdown(
    study: &Study,
    criteria: &Criteria,
    grouped: Option<&GroupedMeans>,
) -> String {
    let view = StudyView::new(study, criteria);
    let found = Answer::from_view(&view);
    let mut parts = vec![format!("# {}", study.name()), title(study)];
    parts.push(format!("**{}**: {}", found.headline, found.reason));
    let facts: Vec<String> = found
        .facts
        .iter()
        .map(|(name, text)| format!("- {name}: {text}"))
        .collect();
    if !facts.is_empty() {
        parts.push(facts.join("\n"));
    }
    parts.extend(found.notes);
    parts.push(rows(study, criteria).to_markdown());
    if let Some(grouped) = grouped {
        parts.push(grouped.sentence(&view));
        parts.push(grouped.rows(&view, usize::MAX).to_markdown());
    }
    let ranges = better_ranges(&view).into_iter().map(|one| {
        format!(
            "- {} by {}: {}",
            one.name(),
            axis_name(&one.axis),
            one.text()
        )
    });
    let ranges: Vec<String> = ranges.collect();
    if !ranges.is_empty() {
        parts.push(format!("Better than {}:", view.reference_setting()));
        parts.push(ranges.join("\n"));
    }
    parts.extend(problems(&view));
    parts.join("\n\n") + "\n"
}

/// The text of the recommendation and its facts.
fn recommendation_text(view: &StudyView<'_>) -> String {
    let found = Answer::from_view(view);
    let separator = if view.choice.is_ok() { ", " } else { ": " };
    let end = if found.reason.ends_with('.') { "" } else { "." };
    let mut lines = vec![wrap(
        &format!("{}{separator}{}{end}", found.headline, found.reason),
        2,
    )];
    let width = found
        .facts
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0)
        .min(32);
    for (name, text) in &found.facts {
        match name.chars().count() > width {
            true => lines.push(wrap(&format!("  {name}: {text}"), 4)),
            false => lines.push(wrap(&format!("  {name:<width$}  {text}"), width + 4)),
        }
    }
    lines.extend(found.notes.iter().map(|note| wrap(note, 2)));
    lines.join("\n")
}

/// Draws the table of `sweep`; if it is too wide, with all settings in one column.
fn table(view: &StudyView<'_>) -> String {
    let usual = rows(view.study, view.criteria).to_terminal_unwrapped();
    if usual
        .lines()
        .all(|line| line.chars().count() <= TERMINAL_COLUMNS)
    {
        return usual;
    }
    let headings: Vec<&str> = ["Target metric", "Setting"]
        .into_iter()
        .chain(RESULTS)
        .collect();
    let mut rows = Table::new(&headings).with_text_columns(2);
    for (index, row) in choices(view.study, view.criteria).into_iter().enumerate() {
        let mut cells = vec![row.label.clone(), setting(&view.varied, row.point)];
        cells.extend(results(&row, index == 0));
        rows.push(cells);
    }
    rows.to_terminal()
}

/// Describes the ranges that are better than the reference; `None` if there are none to compute.
fn ranges(view: &StudyView<'_>) -> Option<Vec<String>> {
    let all = better_ranges(view);
    let width = all.iter().map(|one| one.name().chars().count()).max()?;
    let mut lines = Vec::new();
    for axis in &view.varied {
        let mut of_axis = all.iter().filter(|one| one.axis == *axis).peekable();
        if all
            .iter()
            .filter(|one| one.axis == *axis)
            .all(BetterRanges::is_nowhere)
        {
            if of_axis.peek().is_some() {
                let text = format!(
                    "Better than {}, by {}: nowhere",
                    view.reference_setting(),
                    axis_name(axis)
                );
                lines.push(wrap(&text, 2));
            }
            continue;
        }
        if of_axis.peek().is_some() {
            let text = format!(
                "Better than {}, by {}:",
                view.reference_setting(),
                axis_name(axis)
            );
            lines.push(wrap(&text, 2));
        }
        lines.extend(of_axis.map(|one| {
            wrap(
                &format!("  {:<width$}  {}", one.name(), one.text()),
                width + 4,
            )
        }));
    }
    Some(lines)
}

/// Lists failures by their reason, and the power caps that the device replaced by a lower one.
fn problems(view: &StudyView<'_>) -> Option<String> {
    let study = view.study;
    let mut failed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for point in study.points.iter().chain([&study.reference]) {
        if let Some(failure) = point.failure() {
            let reason = format!("{}: {}", failure.status, failure.reason);
            let settings = failed.entry(reason).or_default();
            let here = setting(&view.varied, point);
            if !settings.contains(&here) {
                settings.push(here);
            }
        }
    }
    let mut lines: Vec<String> = failed
        .iter()
        .take(MAX_PROBLEMS)
        .map(|(reason, settings)| match settings.as_slice() {
            [only] => wrap(&format!("{only} {reason}"), 2),
            [first, ..] => wrap(
                &format!("{} configurations, first {first}, {reason}", settings.len()),
                2,
            ),
            [] => String::new(),
        })
        .collect();
    if failed.len() > MAX_PROBLEMS {
        lines.push(format!(
            "{} more reasons: `sweetspot study show` has all",
            failed.len() - MAX_PROBLEMS
        ));
    }
    if let Some(short) = shortfalls(study) {
        let all: Vec<&str> = short.lines().collect();
        lines.extend(all.iter().take(MAX_PROBLEMS).map(|line| wrap(line, 2)));
        if all.len() > MAX_PROBLEMS {
            lines.push(format!(
                "for {} more caps the device enforced a lower one",
                all.len() - MAX_PROBLEMS
            ));
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}
