//! The objective by two settings, as a heat map.

use sweetspot_decide::Direction;
use sweetspot_study::{Axis, Configuration};

use super::chart::{Chart, ChartAxis, Figure, HeatCell, HeatMap};
use crate::analysis::view::StudyView;
use crate::settings::{axis_label, axis_name};
use crate::wording::format_amount;

/// The largest number of heat maps of a study.
const MAX_FIGURES: usize = 3;
/// The largest number of values of an axis; cells of more would be too small to see.
const MAX_VALUES: usize = 60;

/// Makes a heat map of the objective for each pair of axes with at least two values each; a study of one axis has none.
pub fn heat_maps(view: &StudyView<'_>) -> Vec<Figure> {
    let axes: Vec<&Axis> = view
        .varied
        .iter()
        .filter(|axis| (2..=MAX_VALUES).contains(&view.values(axis).len()))
        .collect();
    let pairs = axes.iter().enumerate();
    let pairs =
        pairs.flat_map(|(index, first)| axes[index + 1..].iter().map(|other| (*first, *other)));
    let figures = pairs.filter_map(|(first, other)| figure(view, first, other));
    figures.take(MAX_FIGURES).collect()
}

/// Makes the heat map of two axes; the others are as in the choice. `None` if fewer than half of the cells have a value,
/// as in a study that followed a search.
fn figure(view: &StudyView<'_>, first: &Axis, other: &Axis) -> Option<Figure> {
    // The axis with more values is the horizontal one.
    let (across, up) = match view.values(first).len() >= view.values(other).len() {
        true => (first, other),
        false => (other, first),
    };
    let objective = view.criteria.objective;
    let chosen = view.chosen().map(|index| &view.study.points[index]);
    let fixed = &chosen.unwrap_or(&view.study.reference).configuration;
    let others: Vec<&Axis> = view
        .varied
        .iter()
        .filter(|axis| *axis != across && *axis != up)
        .collect();
    let is_shown = |configuration: &Configuration| {
        let mut others = others.iter();
        others.all(|axis| axis.text(configuration) == axis.text(fixed))
    };
    let (columns, rows) = (view.values(across), view.values(up));
    let reference = view.reference_index();
    let at_reference = reference.and_then(|index| view.estimate(index, objective));
    let scale = match objective.needs_reference() {
        true => None,
        false => at_reference
            .map(|estimate| 1.0 / estimate.value)
            .filter(|scale| scale.is_finite()),
    };
    let mut cells = Vec::new();
    for (index, point) in view.study.points.iter().enumerate() {
        let place = |axis: &Axis, values: &[String]| {
            let text = axis.text(&point.configuration)?;
            values.iter().position(|value| *value == text)
        };
        let (Some(column), Some(row)) = (place(across, &columns), place(up, &rows)) else {
            continue;
        };
        if !is_shown(&point.configuration) {
            continue;
        }
        let estimate = view.estimate(index, objective);
        let value = estimate.map(|estimate| estimate.value * scale.unwrap_or(1.0));
        let value = value.filter(|value| super::chart::is_drawable(*value));
        let shown = match value {
            Some(value) => format_amount(value, ""),
            None => "no value".to_owned(),
        };
        cells.push(HeatCell {
            column,
            row,
            value,
            text: format!("{}\n{objective} {}", view.setting(index), shown.trim_end()),
            is_reference: Some(index) == reference,
            is_choice: Some(index) == view.chosen(),
        });
    }
    let known = cells.iter().filter(|cell| cell.value.is_some()).count();
    if known < 4 || 2 * known < columns.len() * rows.len() {
        return None;
    }
    let unit = match scale {
        Some(_) => " [reference = 1]",
        None => "",
    };
    let fixed_text = match others.is_empty() {
        true => String::new(),
        false => {
            let others: Vec<Axis> = others.into_iter().cloned().collect();
            let setting = crate::settings::configuration_text(&others, fixed);
            format!(" Other settings: {setting}.")
        }
    };
    let name = super::palette::metric_name(objective);
    Some(Figure {
        id: format!("map-{}-{}", across.name(), up.name()),
        title: format!("{name} by {} and {}", axis_name(across), axis_name(up)),
        caption: format!(
            "The darkest cell is the best. The dashed outline is the reference ({}), the solid outline the {}; a cross marks settings that failed.{fixed_text}",
            view.reference_setting(),
            view.chosen_name()
        ),
        charts: vec![Chart {
            title: format!("{name}{unit}"),
            x: axis_named(across),
            y: axis_named(up),
            heat_map: Some(HeatMap {
                columns,
                rows,
                cells,
                larger_is_better: objective.direction() == Direction::Most,
            }),
            is_wide: true,
            ..Chart::default()
        }],
    })
}

/// A chart axis with the name of an axis of the study.
fn axis_named(axis: &Axis) -> ChartAxis {
    ChartAxis {
        label: axis_label(axis),
        ..ChartAxis::default()
    }
}
