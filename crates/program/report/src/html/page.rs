//! The parts of every page: style, script, figures, tables.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::figure::{Figure, Line, LineStyle, Size, inline, number, variables};

/// The style sheet of every page.
const STYLE: &str = include_str!("style.css");
/// The script of every page, which sorts and filters tables.
const SCRIPT: &str = include_str!("script.js");

/// Makes a page that needs no other file.
pub fn page(title: &str, subtitle: &Markup, body: &Markup, foot: &Markup) -> String {
    let colours = format!(
        ":root{{{light}}}@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}:root[data-theme=dark]{{{dark}}}@media print{{:root,:root[data-theme=dark]{{{light}}}}}",
        light = variables(false),
        dark = variables(true),
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
                meta name="generator" content=(concat!("sweetspot ", env!("CARGO_PKG_VERSION")));
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(colours)) }
            }
            body {
                header {
                    div.bar {
                        p.brand { "Sweetspot" }
                        button #theme type="button" hidden { "Theme: system" }
                    }
                    h1 { (title) }
                    (subtitle)
                }
                main { (body) }
                footer { (foot) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    // Names in a study or of a driver may contain control characters, which HTML does not allow.
    let is_invalid = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    page.into_string().replace(is_invalid, "\u{fffd}")
}

/// Makes links to the parts of a page, from their ids and titles.
pub fn contents(parts: &[(String, String)]) -> Markup {
    html! {
        nav aria-label="Contents" {
            @for (id, name) in parts {
                a href={ "#" (id) } { (name) }
            }
        }
    }
}

/// Makes figures, each with a table of its values if there are not too many values.
pub fn figures(figures: &[Figure]) -> Markup {
    html! {
        @for figure in figures {
            figure.card id=(figure.id) {
                h3 { (figure.title) }
                figcaption { (figure.caption) }
                div class={ "charts" (columns_class(figure)) } {
                    @for chart in &figure.charts {
                        @if chart.is_wide {
                            (PreEscaped(inline(chart, Size::WIDE, "wide")))
                            (PreEscaped(inline(chart, Size::TALL, "narrow")))
                        } @else {
                            (PreEscaped(inline(chart, Size::SMALL, "")))
                        }
                    }
                }
                (values_table(figure))
            }
        }
    }
}

/// The CSS class for the number of charts side by side.
fn columns_class(figure: &Figure) -> &'static str {
    match figure.charts.len() {
        1 => " one",
        2 | 4 => " two",
        _ => "",
    }
}

/// The largest number of values for which a figure gets a table.
const MAX_TABLE_VALUES: usize = 600;

/// Makes the table of a figure's values.
fn values_table(figure: &Figure) -> Markup {
    let drawn = |line: &&Line| line.style == LineStyle::PointsAndLine && !line.label.is_empty();
    let lines = figure
        .charts
        .iter()
        .flat_map(|chart| &chart.lines)
        .filter(drawn);
    let count: usize = lines.map(|line| line.dots.len()).sum();
    if !(1..=MAX_TABLE_VALUES).contains(&count) {
        return html! {};
    }
    html! {
        details {
            summary { "Values" }
            @for chart in &figure.charts {
                @let lines = chart.lines.iter().filter(drawn).collect::<Vec<_>>();
                @if !lines.is_empty() {
                    div.scroll {
                        table {
                            caption { (chart.title) }
                            thead { tr {
                                th scope="col" { (chart.x.label) }
                                @for line in &lines { th scope="col" { (line.label) } }
                            } }
                            tbody {
                                @for x in x_values(&lines) {
                                    tr {
                                        td { (x_value_text(chart, x)) }
                                        @for line in &lines {
                                            td {
                                                @match line.dots.iter().find(|dot| dot.x == x) {
                                                    Some(dot) => { (number(dot.y)) }
                                                    None => { "-" }
                                                }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The different x values of some lines, in ascending order.
fn x_values(lines: &[&Line]) -> Vec<f64> {
    let mut all: Vec<f64> = lines
        .iter()
        .flat_map(|line| line.dots.iter().map(|dot| dot.x))
        .collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// The text of an x value, as on the chart's axis.
fn x_value_text(chart: &crate::figure::Chart, x: f64) -> String {
    match &chart.x.kind {
        crate::figure::AxisKind::Categories(names) => {
            names.get(x as usize).cloned().unwrap_or_default()
        }
        _ => number(x),
    }
}

/// Makes a table cell with the change from the reference, coloured by whether it is better or worse.
pub fn change_cell(change: Option<f64>) -> Markup {
    let class = match change {
        Some(change) if change <= -0.0005 => "good",
        Some(change) if change >= 0.0005 => "bad",
        _ => "",
    };
    let text = change.map_or_else(|| "-".to_owned(), crate::wording::format_percent);
    let text = text.replacen('-', if change.is_some() { "\u{2212}" } else { "-" }, 1);
    html! { td class=[(!class.is_empty()).then_some(class)] { (text) } }
}
