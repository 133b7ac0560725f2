//! Time and energy against the batch and the number of GPUs, at the reference and at the choice
//! (node_power_capping_2023, figure 7; multi_gpu_2018, figures 5 to 8).

use sweetspot_decide::Objective;
use sweetspot_study::{Axis, BATCH_PARAMETER, Configuration};

use super::chart::{Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle};
use crate::analysis::view::StudyView;
use crate::settings::axis_name;
use crate::wording::format_amount;

/// Makes a figure for the batch size and one for the number of GPUs, if the study varies them.
pub fn scaling(view: &StudyView<'_>) -> Vec<Figure> {
    let axes = [Axis::Gpus, Axis::Parameter(BATCH_PARAMETER.to_owned())];
    let axes = axes
        .iter()
        .filter(|axis| view.varied.contains(axis) && view.is_numeric(axis));
    axes.filter_map(|axis| figure(view, axis)).collect()
}

/// Makes the figure of one of these axes.
fn figure(view: &StudyView<'_>, axis: &Axis) -> Option<Figure> {
    let others = view.others(axis);
    let reference = &view.study.reference.configuration;
    let mut fixed: Vec<(String, Configuration)> =
        vec![(line_label(&others, reference), reference.clone())];
    if let Some(chosen) = view.chosen() {
        let chosen = &view.study.points[chosen].configuration;
        let name = line_label(&others, chosen);
        if fixed[0].0 != name {
            fixed.push((name, chosen.clone()));
        }
    }
    // Where batch and GPUs both vary, each value of the other axis has a line.
    if let [other @ (Axis::Gpus | Axis::Parameter(_))] = others.as_slice() {
        let values = super::performance::spread_values(view.values(other));
        fixed = values
            .iter()
            .filter_map(|value| {
                let fixed = super::performance::with_axis_value(view, reference, other, value)?;
                Some((line_label(&others, &fixed), fixed))
            })
            .collect();
    }
    let drawn = [
        ("Time [s]", Objective::Time, "s", 1.0),
        ("Energy [kJ]", Objective::Energy, "J", 1e-3),
        ("Energy [J/item]", Objective::EnergyPerItem, "J/item", 1.0),
    ];
    let mut charts = Vec::new();
    for (title, objective, unit, scale) in drawn {
        let mut lines = Vec::new();
        for (index, (name, fixed)) in fixed.iter().enumerate() {
            let dots = dots(view, axis, fixed, objective, (unit, scale));
            if index == 0 && *axis == Axis::Gpus && objective == Objective::Time {
                lines.extend(ideal(&dots));
            }
            if dots.len() > 1 {
                lines.push(Line {
                    label: name.clone(),
                    colour: Colour::of(index),
                    dots,
                    style: LineStyle::PointsAndLine,
                });
            }
        }
        if lines
            .iter()
            .any(|line| line.style == LineStyle::PointsAndLine)
        {
            charts.push(Chart {
                title: title.to_owned(),
                x: view.chart_axis(axis),
                y: ChartAxis::from_zero(title.to_owned()),
                lines,
                ..Chart::default()
            });
        }
    }
    if charts.is_empty() {
        return None;
    }
    let ideal = match axis {
        Axis::Gpus => {
            " The broken line is the time with ideal scaling: every added GPU does a full share."
        }
        _ => "",
    };
    Some(Figure {
        id: format!("scaling-{}", axis.name()),
        title: format!("Time and energy by {}", axis_name(axis)),
        caption: format!(
            "At the setting of the reference and at the chosen setting. Energy of {}.{ideal}",
            view.study.energy_of()
        ),
        charts,
    })
}

/// The label of a line: the values of the other axes.
fn line_label(others: &[Axis], fixed: &Configuration) -> String {
    crate::settings::configuration_text(others, fixed)
}

/// Makes the data points of one line.
fn dots(
    view: &StudyView<'_>,
    axis: &Axis,
    fixed: &Configuration,
    objective: Objective,
    (unit, scale): (&str, f64),
) -> Vec<Dot> {
    let slice = view.slice(axis, fixed);
    slice
        .into_iter()
        .filter_map(|index| {
            let x = axis.number(&view.study.points[index].configuration)?;
            let estimate = view.estimate(index, objective)?;
            let text = format!(
                "{}\n{}",
                view.setting(index),
                format_amount(estimate.value, unit)
            );
            Some(super::dot(x, &estimate, scale, text))
        })
        .collect()
}

/// Returns the line of ideal scaling: the time if every added GPU did a full share, starting from the fewest GPUs.
fn ideal(dots: &[Dot]) -> Option<Line> {
    let first = dots.first()?;
    let ideal = dots.iter().map(|dot| Dot {
        x: dot.x,
        y: first.y * first.x / dot.x,
        ..Dot::default()
    });
    (dots.len() > 1).then(|| Line {
        label: "ideal".to_owned(),
        colour: Colour::GREY,
        dots: ideal.collect(),
        style: LineStyle::Guide,
    })
}
