//! A study as an HTML page.

use maud::{Markup, html};
use sweetspot_decide::Criteria;
use sweetspot_papers::OwnComparison;
use sweetspot_quantity::Ratio;
use sweetspot_stats::Summary;
use sweetspot_study::{Axis, Outline, Point, Study};

use crate::analysis::answer::Answer;
use crate::analysis::choices::choices;
use crate::analysis::groups::GroupedMeans;
use crate::analysis::ranges::{BetterRanges, better_ranges};
use crate::analysis::view::StudyView;
use crate::figure::{Timeline, number};
use crate::html::{change_cell, contents, figures, page, table};
use crate::reproduce::own_reproduction_html;
use crate::settings::heading;
use crate::study::batches::whole_batch_tables;
use crate::study::{failures, node_warning, shortfalls, title};
use crate::wording::format_percent;

/// The parts of a page in addition to a study's results.
#[derive(Default)]
pub struct ReportExtras<'a> {
    /// How the study was defined and run; `None` if the study is not stored.
    pub outline: Option<&'a Outline>,
    /// The runs whose sensor readings are drawn over time.
    pub timelines: &'a [Timeline],
    /// The means along an axis; `None` if the user did not request them.
    pub grouped: Option<&'a GroupedMeans>,
    /// The paper that the study reproduces; `None` if it reproduces none.
    pub reproduction: Option<&'a OwnComparison>,
}

/// Makes the HTML page of a study.
pub fn study_html(study: &Study, criteria: &Criteria, extras: &ReportExtras<'_>) -> String {
    let view = StudyView::new(study, criteria);
    let answer = Answer::from_view(&view);
    let drawn = crate::figure::figures(&view, extras.timelines);
    let mut parts = vec![("results".to_owned(), "Results".to_owned())];
    parts.extend(
        drawn
            .iter()
            .map(|figure| (figure.id.clone(), figure.title.clone())),
    );
    parts.push(("all".to_owned(), "All configurations".to_owned()));
    let lines = title(study);
    let subtitle = html! {
        @for line in lines.lines() { p.sub { (line) } }
    };
    let body = html! {
        (answer_card(&answer))
        (contents(&parts))
        h2 #results { "Results" }
        div.card {
            (results(&view))
            (ranges(&view))
        }
        @if let Some(own) = extras.reproduction { (own_reproduction_html(own)) }
        @if let Some(grouped) = extras.grouped { (groups(&view, grouped)) }
        @if !drawn.is_empty() { h2 { "Figures" } }
        (figures(&drawn))
        @for (title, rows) in whole_batch_tables(study) {
            h2 { (title) }
            div.card { div.scroll { (table(&rows)) } }
        }
        (problems(study))
        h2 #all { "All configurations" }
        (all_configurations(&view))
    };
    page(
        &study.name(),
        &subtitle,
        &body,
        &foot(study, criteria, extras),
    )
}

/// Makes the box with the recommendation.
fn answer_card(answer: &Answer) -> Markup {
    html! {
        section.card.answer aria-label="Answer" {
            h2 { (answer.headline) }
            p.reason { (answer.reason) }
            @if answer.energy.is_some() || answer.time.is_some() {
                div.tiles {
                    (change_box("energy", answer.energy))
                    (change_box("time", answer.time))
                    (change_box("average power", answer.power))
                }
            }
            @if !answer.facts.is_empty() {
                dl {
                    @for (name, text) in &answer.facts {
                        dt { (name) }
                        dd { (text) }
                    }
                }
            }
            @for note in &answer.notes { p.note { (note) } }
        }
    }
}

/// Makes the box with the change of one quantity.
fn change_box(name: &str, change: Option<Ratio>) -> Markup {
    let Some(change) = change.map(Ratio::get) else {
        return html! {};
    };
    let class = if change < 0.0 {
        "tile good"
    } else {
        "tile bad"
    };
    html! {
        div class=(class) {
            b { (format_percent(change).replace('-', "\u{2212}").replace(' ', "\u{202f}")) }
            span { (name) }
        }
    }
}

/// Formats a scaled number, or a dash if it is unknown.
fn number_or_dash(value: Option<f64>, scale: f64, digits: usize) -> String {
    let value = value.filter(|value| value.is_finite());
    value.map_or_else(
        || "-".to_owned(),
        |value| format!("{:.digits$}", value * scale),
    )
}

/// Makes the table of the best settings, with the columns of tables 2 and 3 of power_capping_2022.
fn results(view: &StudyView<'_>) -> Markup {
    let flat = |axis: &Axis| heading(axis).replace('\n', " ");
    let rows = choices(view.study, view.criteria);
    if rows.is_empty() {
        return html! { p { "No configuration ran without a failure." } };
    }
    html! {
        div.scroll {
            table {
                thead { tr {
                    th scope="col" { "Target metric" }
                    @for axis in &view.varied { th scope="col" { (flat(axis)) } }
                    @for name in ["Average power [W]", "Energy [kJ]", "vs default", "Time [s]", "vs default"] {
                        th scope="col" { (name) }
                    }
                } }
                tbody {
                    @for (index, row) in rows.iter().enumerate() {
                        @let energy = row.outcome.energy.map(|energy| energy.get());
                        tr {
                            td { (row.label) }
                            @for axis in &view.varied { td { (crate::settings::cell(axis, row.point)) } }
                            td { (number_or_dash(energy.map(|energy| energy / row.outcome.time.get()), 1.0, 1)) }
                            td { (number_or_dash(energy, 1e-3, 3)) }
                            (change_cell(row.energy.filter(|_| index > 0).map(Ratio::get)))
                            td { (number_or_dash(Some(row.outcome.time.get()), 1.0, 1)) }
                            (change_cell(row.time.filter(|_| index > 0).map(Ratio::get)))
                        }
                    }
                }
            }
        }
    }
}

/// Makes the table of ranges that are better than the reference.
fn ranges(view: &StudyView<'_>) -> Markup {
    let all = better_ranges(view);
    html! {
        @for axis in view.varied.iter().filter(|axis| all.iter().any(|one| one.axis == **axis)) {
            h3.range {
                "Better than " (view.reference_setting()) ", by " (crate::settings::axis_name(axis))
            }
            div.scroll { table {
                tbody {
                    @if all.iter().filter(|one| one.axis == *axis).all(BetterRanges::is_nowhere) {
                        tr { td { "No value, for any of the metrics" } }
                    } @else {
                        @for one in all.iter().filter(|one| one.axis == *axis) {
                            tr { td { (one.name()) } td.w { (one.text()) } }
                        }
                    }
                }
            } }
        }
    }
}

/// Makes the table of means along an axis.
fn groups(view: &StudyView<'_>, grouped: &GroupedMeans) -> Markup {
    let rows = grouped.rows(view, usize::MAX);
    html! {
        h2 #groups { "By " (crate::settings::axis_name(&grouped.by)) }
        div.card {
            p { (grouped.sentence(view)) }
            div.scroll { (table(&rows)) }
        }
    }
}

/// Lists failed configurations and other problems.
fn problems(study: &Study) -> Markup {
    let problems: Vec<String> = failures(study)
        .into_iter()
        .chain(shortfalls(study))
        .chain(node_warning(study))
        .collect();
    html! {
        @if !problems.is_empty() {
            h2 #problems { "Problems" }
            div.card { @for text in &problems { @for line in text.lines() { p { (line) } } } }
        }
    }
}

/// Formats a mean and the half width of its 95 % confidence interval.
fn with_interval(summary: Option<Summary>, scale: f64) -> String {
    let Some(summary) = summary.filter(|summary| summary.mean.is_finite()) else {
        return "-".to_owned();
    };
    let half = summary
        .interval95
        .map(|interval| (interval.high - interval.low) / 2.0 * scale);
    match half {
        Some(half) => format!("{} ± {}", number(summary.mean * scale), digits(half)),
        None => number(summary.mean * scale),
    }
}

/// Formats a number with two significant digits.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 10.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Makes the table of all configurations, including the values that the workload reported.
fn all_configurations(view: &StudyView<'_>) -> Markup {
    let study = view.study;
    let items = view.has_items();
    let values: std::collections::BTreeSet<String> = study
        .points
        .iter()
        .flat_map(|point| point.values().into_keys())
        .collect();
    let values: Vec<String> = values.into_iter().take(8).collect();
    let mut heads: Vec<String> = view
        .varied
        .iter()
        .map(|axis| heading(axis).replace('\n', " "))
        .collect();
    heads.extend(
        [
            "Runs",
            "Time [s]",
            "vs default",
            "Energy [kJ]",
            "vs default",
            "Power [W]",
        ]
        .map(str::to_owned),
    );
    if items {
        heads.extend(["Items/s", "J/item"].map(str::to_owned));
    }
    heads.extend(["EDP", "EDS(k=2.0)", "EDS(k=1.5)"].map(|name| format!("{name} [ref. = 1]")));
    heads.extend(values.iter().cloned());
    heads.push("Status".to_owned());
    html! {
        section.card.all {
            div.tools {
                input type="search" placeholder="Show only rows that contain all of these words" aria-label="Filter the table";
                span.sub { (study.points.len()) " configurations; press a heading to sort" }
            }
            div.scroll tabindex="0" role="region" aria-label="All configurations" {
                table {
                    thead { tr { @for head in &heads { th scope="col" { (head) } } } }
                    tbody {
                        @for index in 0..study.points.len() { (configuration_row(view, index, items, &values)) }
                    }
                }
            }
        }
    }
}

/// Makes the table row of one configuration.
fn configuration_row(view: &StudyView<'_>, index: usize, items: bool, values: &[String]) -> Markup {
    let point: &Point = &view.study.points[index];
    let class = match (
        Some(index) == view.chosen(),
        Some(index) == view.reference_index(),
    ) {
        (true, true) => "pick ref",
        (true, false) => "pick",
        (false, true) => "ref",
        _ => "",
    };
    let outcome = point.outcome();
    let failed = point.failure();
    let relative = view.relative(index);
    let power = point.average_power().map(|power| power.get());
    let count = outcome.as_ref().and_then(|outcome| outcome.items);
    let time = outcome.as_ref().map(|outcome| outcome.time.get());
    let energy = outcome
        .as_ref()
        .and_then(|outcome| outcome.energy)
        .map(|energy| energy.get());
    let short = |value: Option<f64>| {
        let value = value.filter(|value| value.is_finite());
        value.map_or_else(|| "-".to_owned(), number)
    };
    let sum = |k: f64| relative.map(|(time, energy)| ((k - 1.0) * energy + time) / k);
    let means = point.values();
    html! {
        tr class=[(!class.is_empty()).then_some(class)] {
            @for axis in &view.varied { td { (crate::settings::cell(axis, point)) } }
            td { (point.results().count()) }
            td { (with_interval(point.time().filter(|_| failed.is_none()), 1.0)) }
            (change_cell(relative.map(|(time, _)| time - 1.0)))
            td { (with_interval(point.energy().filter(|_| failed.is_none()), 1e-3)) }
            (change_cell(relative.map(|(_, energy)| energy - 1.0)))
            td { (number_or_dash(power, 1.0, 1)) }
            @if items {
                td { (short(count.zip(time).map(|(count, time)| count / time))) }
                td { (short(energy.zip(count).map(|(energy, count)| energy / count))) }
            }
            td { (number_or_dash(relative.map(|(time, energy)| time * energy), 1.0, 3)) }
            td { (number_or_dash(sum(2.0), 1.0, 3)) }
            td { (number_or_dash(sum(1.5), 1.0, 3)) }
            @for name in values { td { (short(means.get(name).map(|value| value.mean))) } }
            td { (point.status().to_string()) }
        }
    }
}

/// Makes the foot of the page: how the study was run, and what the metrics mean.
fn foot(study: &Study, criteria: &Criteria, extras: &ReportExtras<'_>) -> Markup {
    let plan = &study.plan;
    html! {
        dl {
            @if let Some(command) = &study.subject.workload.command {
                dt { "Command" } dd { code { (command.join(" ")) } }
            }
            dt { "Devices" }
            dd {
                @for device in &study.subject.devices {
                    div { (device.name) " (" (device.id.as_str()) ")" }
                }
            }
            dt { "Plan" }
            dd { (plan.configurations.len()) " configurations, " (match &plan.search { Some(search) => format!("{} runs by a {} search", study.run_count(), search.strategy), None => format!("{} runs each", plan.repeat) }) ", " (plan.order.to_string()) ", seed " (plan.seed) }
            dt { "Objective" }
            dd { (criteria.objective.to_string()) @for limit in &criteria.limits { ", " (limit.to_string()) } }
            @if let Some(outline) = extras.outline {
                dt { "Made by" } dd { (outline.program) " on " (outline.machine) }
            }
            dt { "Metrics" }
            dd { "EDP is energy times time. EDS(k) = ((k\u{2212}1) E/E" sub { "ref" } " + t/t" sub { "ref" } ") / k: 1 at the reference, less is better (Krzywaniak, Czarnul and Proficz, ICCS 2022)." }
        }
    }
}
