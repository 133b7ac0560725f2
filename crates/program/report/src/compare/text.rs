//! The comparison of studies, for a terminal and as Markdown.

use sweetspot_decide::{Objective, Outcome};

use super::{CommonSetting, ComparedQuantity, RelativeDifference, StudyComparison};
use crate::analysis::choices::objective_label;
use crate::analysis::recommendation::recommendation;
use crate::analysis::view::StudyView;
use crate::table::Table;
use crate::text::{Line, Role, Text, change_role};
use crate::wording::{format_amount, format_percent};

/// The number of common settings that a terminal shows.
const MAX_ROWS: usize = 36;

/// Makes the text that `sweetspot compare` prints on a terminal.
pub fn compare_text(compared: &StudyComparison<'_>) -> Text {
    let summary = super::html::summary(compared).join("\n");
    let mut parts: Vec<Text> = vec![
        studies_text(compared).into(),
        summary.into(),
        best(compared).into(),
        recommendations(compared).into(),
    ];
    for side in 1..compared.studies.len() {
        let (rows, more) = differences(compared, side, MAX_ROWS);
        parts.push(Line::with_role_of(Role::Heading, heading(compared, side)).into());
        let mut table = Text::from(rows);
        if more > 0 {
            table += format!(" ({more} more settings: the CSV export has all)");
        }
        parts.push(table);
        parts.extend(by_phase(compared, side, MAX_ROWS).map(Text::from));
    }
    parts.push(Line::with_role_of(Role::Secondary, LEGEND).into());
    parts.extend(compared.notes.iter().map(Text::from));
    Text::from_parts(parts)
}

/// The value of an objective at an outcome, compared for the same work.
fn objective_value(view: &StudyView<'_>, objective: Objective, outcome: &Outcome) -> Option<f64> {
    objective.value(outcome, view.comparison.basis()).ok()
}

/// Makes the Markdown document of `sweetspot compare`.
pub fn compare_markdown(compared: &StudyComparison<'_>) -> String {
    let summary = super::html::summary(compared).join("\n\n");
    let mut parts = vec![
        studies_text(compared).replace('\n', "\n\n"),
        summary,
        best(compared).to_markdown(),
        recommendations(compared).replace('\n', "\n\n"),
    ];
    for side in 1..compared.studies.len() {
        let (rows, _) = differences(compared, side, usize::MAX);
        parts.push(heading(compared, side));
        parts.push(rows.to_markdown());
        parts.extend(by_phase(compared, side, usize::MAX).map(|rows| rows.to_markdown()));
    }
    parts.push(LEGEND.to_owned());
    parts.extend(compared.notes.iter().cloned());
    parts.join("\n\n") + "\n"
}

/// The explanation of brackets and question marks in the tables.
const LEGEND: &str = "Differences are in percent of the first study; in brackets: not significant at the 5 % level, all settings together; with a question mark: single runs, significance unknown.";

/// Lists the names of the studies and what they contain.
fn studies_text(compared: &StudyComparison<'_>) -> String {
    let names = compared.studies.iter().map(|side| {
        let study = side.view.study;
        format!(
            "{}: {}, {} {}, energy of {}",
            side.name,
            study.name(),
            study.points.len(),
            match study.points.len() {
                1 => "configuration",
                _ => "configurations",
            },
            study.energy_of()
        )
    });
    names.collect::<Vec<_>>().join("\n")
}

/// Writes the recommendation of each study.
fn recommendations(compared: &StudyComparison<'_>) -> String {
    let studies = compared.studies.iter();
    let lines = studies.map(|side| {
        let view = &side.view;
        format!(
            "{}: {}",
            side.name,
            recommendation(view.study, view.criteria)
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The heading above the tables of one study.
fn heading(compared: &StudyComparison<'_>, side: usize) -> String {
    format!(
        "{} against {}:",
        compared.studies[side].name, compared.studies[0].name
    )
}

/// Makes the table of each study's best setting for each objective. It is compared with the study's reference and with
/// the first study's best setting.
pub fn best(compared: &StudyComparison<'_>) -> Table {
    let (time, energy) = match compared.is_per_item() {
        true => ("Time\n[ms/item]", "Energy\n[J/item]"),
        false => ("Time\n[s]", "Energy\n[kJ]"),
    };
    let mut rows = Table::new(&[
        "Best by",
        "Study",
        "Setting",
        time,
        "vs default\n[%]",
        energy,
        "vs default\n[%]",
        "vs first\n[%]",
    ])
    .with_text_columns(3)
    .with_key_columns(3)
    .with_column_roles(&[4, 6], change_role);
    for objective in compared.objectives() {
        let mut first = None;
        for (index, side) in compared.studies.iter().enumerate() {
            let view = &side.view;
            let target = objective_label(objective);
            let per_item = compared.is_per_item();
            let best = match view.comparison.best_mean(objective, &view.criteria.limits) {
                Ok(best) => best,
                Err(_) => {
                    let mut row = vec![target, side.name.clone(), "none".to_owned()];
                    row.resize(8, "-".to_owned());
                    rows.push(row);
                    continue;
                }
            };
            let mean = view.mean(best).and_then(|mean| compared.same_work(mean));
            let own = mean
                .as_ref()
                .and_then(|mean| objective_value(view, objective, mean));
            if index == 0 {
                first = own;
            }
            let relative = view.relative(best);
            let plain = |change: f64| format_percent(change).replace(" %", "");
            let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let against = first
                .filter(|_| index > 0 && !objective.needs_reference())
                .zip(own)
                .map(|(first, own)| own / first - 1.0)
                .filter(|change| change.is_finite());
            rows.push(vec![
                target,
                side.name.clone(),
                view.setting(best),
                known(mean.as_ref().map(|mean| match per_item {
                    true => format_amount(1e3 * mean.time.get(), ""),
                    false => format!("{:.1}", mean.time.get()),
                })),
                known(relative.map(|(time, _)| plain(time - 1.0))),
                known(mean.as_ref().and_then(|mean| {
                    let energy = mean.energy?.get();
                    Some(match per_item {
                        true => format_amount(energy, ""),
                        false => format!("{:.3}", energy / 1e3),
                    })
                })),
                known(relative.map(|(_, energy)| plain(energy - 1.0))),
                known(against.map(plain)),
            ]);
        }
    }
    rows
}

/// The name, the unit and the factor from the SI unit with which tables show a quantity.
fn name_unit_scale(quantity: &ComparedQuantity) -> (&'static str, &'static str, f64) {
    match quantity {
        ComparedQuantity::Time => ("Time", "s", 1.0),
        ComparedQuantity::Energy => ("Energy", "kJ", 1e-3),
        ComparedQuantity::Power => ("Power", "W", 1.0),
        ComparedQuantity::TimePerItem | ComparedQuantity::PhaseTime(_) => ("Time", "ms/item", 1e3),
        ComparedQuantity::EnergyPerItem | ComparedQuantity::PhaseEnergy(_) => {
            ("Energy", "J/item", 1.0)
        }
    }
}

/// Returns the quantities that tables show: per item if items are known, otherwise per run.
pub fn table_quantities(compared: &StudyComparison<'_>) -> Vec<ComparedQuantity> {
    compared.quantities.iter().take(3).cloned().collect()
}

/// Makes the table of the common settings with at most `most` rows. Also returns the number of settings that are left
/// out.
pub fn differences(compared: &StudyComparison<'_>, side: usize, most: usize) -> (Table, usize) {
    let quantities = table_quantities(compared);
    let mut head = vec!["Setting".to_owned()];
    for quantity in &quantities {
        let (name, unit, _) = name_unit_scale(quantity);
        head.extend([
            format!("{name}\n[{unit}]"),
            shortened_name(&compared.studies[side].name),
            "\n[%]".to_owned(),
        ]);
    }
    let mut rows = Table::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
    let found: Vec<&CommonSetting> = compared
        .common_settings
        .iter()
        .filter(|common| common.points.get(side).is_some_and(Option::is_some))
        .collect();
    for common in found.iter().take(most) {
        rows.push(row(compared, common, side, &quantities, &common.setting));
    }
    (rows, found.len().saturating_sub(most))
}

/// Makes the row of one common setting.
fn row(
    compared: &StudyComparison<'_>,
    common: &CommonSetting,
    side: usize,
    quantities: &[ComparedQuantity],
    name: &str,
) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    for quantity in quantities {
        let (_, _, scale) = name_unit_scale(quantity);
        match compared.difference(common, side, quantity) {
            Some(difference) => row.extend([
                format_amount(difference.first * scale, ""),
                format_amount(difference.here * scale, ""),
                with_significance(&difference),
            ]),
            None => row.extend(["-".to_owned(), "-".to_owned(), "-".to_owned()]),
        }
    }
    row
}

/// Formats a difference as the legend explains.
pub fn with_significance(difference: &RelativeDifference) -> String {
    let Some(relative) = difference.relative else {
        return "-".to_owned();
    };
    let text = format_percent(relative).replace(" %", "");
    match difference.significant {
        Some(true) => text,
        Some(false) => format!("({text})"),
        None => format!("{text}?"),
    }
}

/// Makes the table of time and energy of each phase, if all studies have phases (multi_gpu_2018, table 10).
pub fn by_phase(compared: &StudyComparison<'_>, side: usize, most: usize) -> Option<Table> {
    if compared.phases.is_empty() {
        return None;
    }
    let unit = match compared.quantities.first() {
        Some(ComparedQuantity::TimePerItem) => ("Time\n[ms/item]", "Energy\n[J/item]"),
        _ => ("Time\n[ms]", "Energy\n[J]"),
    };
    let other = shortened_name(&compared.studies[side].name);
    let mut rows = Table::new(&["Phase", unit.0, &other, "\n[%]", unit.1, &other, "\n[%]"]);
    let found = compared.common_settings.iter();
    let found = found.filter(|common| common.points.get(side).is_some_and(Option::is_some));
    for common in found.take((most / compared.phases.len()).max(1)) {
        for phase in &compared.phases {
            let quantities = [
                ComparedQuantity::PhaseTime(phase.clone()),
                ComparedQuantity::PhaseEnergy(phase.clone()),
            ];
            let found = quantities
                .iter()
                .filter_map(|quantity| compared.difference(common, side, quantity));
            if found
                .into_iter()
                .all(|difference| difference.first == 0.0 && difference.here == 0.0)
            {
                continue;
            }
            let name = format!("{}: {phase}", common.setting);
            rows.push(row(compared, common, side, &quantities, &name));
        }
    }
    Some(rows)
}

/// Shortens the name of a study for a table's heading.
fn shortened_name(name: &str) -> String {
    crate::figure::shortened(name, 12)
}

/// The name of a quantity in tables.
pub fn name(quantity: &ComparedQuantity) -> String {
    match quantity {
        ComparedQuantity::Time => "time".to_owned(),
        ComparedQuantity::Energy => "energy".to_owned(),
        ComparedQuantity::Power => "power".to_owned(),
        ComparedQuantity::TimePerItem => "time for an item".to_owned(),
        ComparedQuantity::EnergyPerItem => "energy for an item".to_owned(),
        ComparedQuantity::PhaseTime(name) => format!("time in {name}"),
        ComparedQuantity::PhaseEnergy(name) => format!("energy in {name}"),
    }
}
