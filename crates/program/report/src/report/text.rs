//! `sweetspot report` for a terminal and as Markdown: the recommendation, the table, the ranges and the problems.

use std::collections::BTreeMap;

use sweetspot_decide::Criteria;
use sweetspot_study::Study;

use crate::analysis::accuracy::AccuracyChoice;
use crate::analysis::answer::Answer;
use crate::analysis::groups::GroupedMeans;
use crate::analysis::ranges::{BetterRanges, better_ranges};
use crate::analysis::view::StudyView;
use crate::settings::{axis_name, setting};
use crate::study::{batch_tables, node_warning, nodes_table, rows, shortfalls, title};
use crate::text::{Line, Role, Text};

/// The number of rows of a long table that a terminal shows.
const MAX_ROWS: usize = 24;
/// The number of problems that are listed one by one.
const MAX_PROBLEMS: usize = 5;

/// Makes the text that `sweetspot report` prints on a terminal.
pub fn report_text(study: &Study, criteria: &Criteria, grouped: Option<&GroupedMeans>) -> Text {
    let view = StudyView::new(study, criteria);
    let mut parts: Vec<Text> = vec![
        title(study).into(),
        recommendation_text(&view),
        rows(study, criteria).into(),
    ];
    if let Some(accuracy) = AccuracyChoice::new(study, criteria) {
        parts.insert(2, accuracy.text.into());
    }
    parts.extend(batch_tables(study));
    parts.extend(nodes_table(study).map(Text::from));
    if let Some(grouped) = grouped {
        parts.push(grouped.sentence(&view).into());
        parts.push(grouped.rows(&view, MAX_ROWS).into());
    }
    parts.extend(ranges(&view));
    parts.extend(problems(&view).map(|text| Text::from(text).with_role(Role::Bad)));
    Text::from_parts(parts)
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
    parts.extend(AccuracyChoice::new(study, criteria).map(|choice| choice.text));
    parts.push(rows(study, criteria).to_markdown());
    parts.extend(batch_tables(study).iter().map(|text| text.to_markdown()));
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
fn recommendation_text(view: &StudyView<'_>) -> Text {
    let found = Answer::from_view(view);
    let role = match &view.choice {
        Ok(choice) if choice.against_reference.is_some() => Role::Good,
        _ => Role::Warning,
    };
    let separator = if view.choice.is_ok() { "," } else { ":" };
    let end = if found.reason.ends_with('.') { "" } else { "." };
    let headline = Line::with_role_of(role, format!("{}{separator}", found.headline));
    let mut text = Text::from(headline.and(format!("{}{end}", found.reason)));
    let names = found.facts.iter().map(|(name, _)| name.chars().count());
    let width = names.max().unwrap_or(0).min(32);
    for (name, fact) in &found.facts {
        text += match name.chars().count() > width {
            true => format!("  {name}: {fact}"),
            false => format!("  {name:<width$}  {fact}"),
        };
    }
    text += found
        .notes
        .iter()
        .map(|note| Line::with_role_of(Role::Warning, note))
        .collect::<Text>();
    text
}

/// Describes the ranges that are better than the reference; `None` if there are none to compute.
fn ranges(view: &StudyView<'_>) -> Option<Text> {
    let all = better_ranges(view);
    let width = all.iter().map(|one| one.name().chars().count()).max()?;
    let mut text = Text::default();
    for axis in &view.varied {
        let of_axis: Vec<&BetterRanges> = all.iter().filter(|one| one.axis == *axis).collect();
        if of_axis.is_empty() {
            continue;
        }
        let axis = axis_name(axis);
        let title = format!("Better than {}, by {axis}:", view.reference_setting());
        if of_axis.iter().all(|one| one.is_nowhere()) {
            text += format!("{title} nowhere");
            continue;
        }
        text += title;
        for one in of_axis {
            text += format!("  {:<width$}  {}", one.name(), one.text());
        }
    }
    Some(text)
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
            [only] => format!("{only} {reason}"),
            [first, ..] => {
                format!("{} configurations, first {first}, {reason}", settings.len())
            }
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
        lines.extend(all.iter().take(MAX_PROBLEMS).map(|line| (*line).to_owned()));
        if all.len() > MAX_PROBLEMS {
            lines.push(format!(
                "for {} more caps the device enforced a lower one",
                all.len() - MAX_PROBLEMS
            ));
        }
    }
    lines.extend(node_warning(study));
    (!lines.is_empty()).then(|| lines.join("\n"))
}
