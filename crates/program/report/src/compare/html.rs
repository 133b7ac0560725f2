//! The comparison of studies as an HTML page.

use maud::{Markup, html};

use super::{StudyComparison, best, by_phase, differences};
use crate::figure::overlays;
use crate::html::{contents, figures, page, table};

/// Makes the HTML page of a comparison.
pub fn compare_html(compared: &StudyComparison<'_>) -> String {
    let drawn = overlays(compared);
    let names: Vec<&str> = compared
        .studies
        .iter()
        .map(|side| side.name.as_str())
        .collect();
    let mut parts = vec![("best".to_owned(), "Best of each".to_owned())];
    parts.extend(
        drawn
            .iter()
            .map(|figure| (figure.id.clone(), figure.title.clone())),
    );
    parts.push(("settings".to_owned(), "Settings in common".to_owned()));
    let subtitle = html! {
        @for side in &compared.studies {
            p.sub { b { (side.name) } ": " (side.view.study.name()) ", energy of " (side.view.study.energy_of().to_string()) }
        }
    };
    let body = html! {
        section.card.answer aria-label="Summary" {
            @for line in summary(compared) { p { (line) } }
            @for note in &compared.notes { p.note { (note) } }
        }
        (contents(&parts))
        h2 #best { "Best of each" }
        div.card { div.scroll { (table(&best(compared))) } }
        @if !drawn.is_empty() { h2 { "Figures" } }
        (figures(&drawn))
        h2 #settings { "Settings in common" }
        @for side in 1..compared.studies.len() { (against(compared, side)) }
    };
    let foot = html! {
        p { "Differences are in percent of the first study; in brackets: not significant at the 5 % level, all settings together; with a question mark: single runs, significance unknown." }
    };
    page(&names.join(" and "), &subtitle, &body, &foot)
}

/// Describes in one sentence for each study how its reference differs from the first study's reference.
pub fn summary(compared: &StudyComparison<'_>) -> Vec<String> {
    let Some(reference) = compared.common_settings.first() else {
        return Vec::new();
    };
    let first = &compared.studies[0].name;
    (1..compared.studies.len())
        .map(|side| {
            let words = compared.quantities.iter().take(3).filter_map(|quantity| {
                let difference = compared.difference(reference, side, quantity)?;
                let relative = difference.relative?;
                let more = if relative < 0.0 { "less" } else { "more" };

                let doubt = match difference.significant {
                    Some(true) => "",
                    Some(false) => " (not significant)",
                    None => " (single runs)",
                };
                let size = 100.0 * relative.abs();
                Some(format!(
                    "{size:.1} % {more} {}{doubt}",
                    super::name(quantity)
                ))
            });
            let words: Vec<String> = words.collect();
            let name = &compared.studies[side].name;
            match words.is_empty() {
                true => format!("{name} and {first} have no value in common at their references."),
                false => format!(
                    "{name} against {first}, each at its reference: {}.",
                    words.join(", ")
                ),
            }
        })
        .collect()
}

/// Makes the tables that compare one study with the first.
fn against(compared: &StudyComparison<'_>, side: usize) -> Markup {
    let (rows, _) = differences(compared, side, usize::MAX);
    html! {
        div.card style="margin-bottom:22px" {
            h3 { (compared.studies[side].name) " against " (compared.studies[0].name) }
            div.scroll { (table(&rows)) }
            @if let Some(rows) = by_phase(compared, side, usize::MAX) {
                h3 style="margin-top:28px" { "By phase" }
                div.scroll { (table(&rows)) }
            }
        }
    }
}
