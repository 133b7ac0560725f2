//! Time and energy against the batch and the number of GPUs, for the reference's and the chosen setting
//! (node_power_capping_2023, figure 7; multi_gpu_2018, figures 5 to 8).

use sweetspot_decide::Objective;
use sweetspot_study::{Axis, BATCH_PARAMETER, Configuration};

use super::chart::{Chart, Dot, Figure, Hue, Line, Look, Ruler};
use crate::choices::axis_name;
use crate::view::View;
use crate::words::amount;

/// A figure for each of the two axes that the study has.
pub fn scaling(view: &View<'_>) -> Vec<Figure> {
    let axes = [Axis::Gpus, Axis::Parameter(BATCH_PARAMETER.to_owned())];
    let axes = axes
        .iter()
        .filter(|axis| view.varied.contains(axis) && view.is_numeric(axis));
    axes.filter_map(|axis| figure(view, axis)).collect()
}

fn figure(view: &View<'_>, axis: &Axis) -> Option<Figure> {
    let others = view.others(axis);
    let reference = &view.study.reference.configuration;
    let mut held: Vec<(String, Configuration)> =
        vec![(named(&others, reference), reference.clone())];
    if let Some(chosen) = view.chosen() {
        let chosen = &view.study.points[chosen].configuration;
        let name = named(&others, chosen);
        if held[0].0 != name {
            held.push((name, chosen.clone()));
        }
    }
    // Where the batch and the GPUs both vary, a line for each of the other.
    if let [other @ (Axis::Gpus | Axis::Parameter(_))] = others.as_slice() {
        let values = super::clocks::spread(view.values(other));
        held = values
            .iter()
            .filter_map(|value| {
                let held = super::clocks::with(view, reference, other, value)?;
                Some((named(&others, &held), held))
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
        for (index, (name, held)) in held.iter().enumerate() {
            let dots = dots(view, axis, held, objective, (unit, scale));
            if index == 0 && *axis == Axis::Gpus && objective == Objective::Time {
                lines.extend(ideal(&dots));
            }
            if dots.len() > 1 {
                lines.push(Line {
                    label: name.clone(),
                    hue: Hue::of(index),
                    dots,
                    look: Look::Dotted,
                });
            }
        }
        if lines.iter().any(|line| line.look == Look::Dotted) {
            charts.push(Chart {
                title: title.to_owned(),
                x: view.ruler(axis),
                y: Ruler::from_zero(title.to_owned()),
                lines,
                ..Chart::default()
            });
        }
    }
    if charts.is_empty() {
        return None;
    }
    let ideal = match axis {
        Axis::Gpus => " The broken line is the time if every GPU added did a full share.",
        _ => "",
    };
    Some(Figure {
        id: format!("scaling-{}", axis.name()),
        title: format!("Time and energy by {}", axis_name(axis)),
        caption: format!(
            "For the reference's and the chosen setting, energy of {}.{ideal}",
            view.study.energy_of()
        ),
        charts,
    })
}

fn named(others: &[Axis], held: &Configuration) -> String {
    crate::configuration_text(others, held)
}

fn dots(
    view: &View<'_>,
    axis: &Axis,
    held: &Configuration,
    objective: Objective,
    (unit, scale): (&str, f64),
) -> Vec<Dot> {
    let slice = view.slice(axis, held);
    slice
        .into_iter()
        .filter_map(|index| {
            let x = axis.number(&view.study.points[index].configuration)?;
            let estimate = view.estimate(index, objective)?;
            let text = format!("{}\n{}", view.setting(index), amount(estimate.value, unit));
            Some(super::dot(x, &estimate, scale, text))
        })
        .collect()
}

/// Time in proportion to the GPUs, from the fewest on.
fn ideal(dots: &[Dot]) -> Option<Line> {
    let first = dots.first()?;
    let ideal = dots.iter().map(|dot| Dot {
        x: dot.x,
        y: first.y * first.x / dot.x,
        ..Dot::default()
    });
    (dots.len() > 1).then(|| Line {
        label: "ideal".to_owned(),
        hue: Hue::GREY,
        dots: ideal.collect(),
        look: Look::Guide,
    })
}
