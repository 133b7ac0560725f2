//! Performance, power and energy against a knob, a line for each value of another (dvfs_2019, figures 1 to 3
//! and the appendix).

use sweetspot_decide::Objective;
use sweetspot_study::{Axis, BATCH_PARAMETER, Configuration};

use super::chart::{Chart, Dot, Figure, Hue, Line, Look};
use crate::choices::axis_name;
use crate::view::View;
use crate::words::amount;

/// Lines beyond this are told apart by nobody.
const MOST_LINES: usize = 6;

/// A figure for each clock, cap or number that has another axis beside it, or is a clock.
pub fn by_parameter(view: &View<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    for axis in view.varied.iter().filter(|axis| view.is_numeric(axis)) {
        let is_clock = matches!(axis, Axis::CoreClock | Axis::MemoryClock);
        let is_cap = *axis == Axis::PowerCap;
        let by = companions(view, axis);
        if !(is_clock || is_cap && !by.is_empty()) {
            continue;
        }
        let drawn: Vec<Figure> = by
            .iter()
            .filter_map(|other| figure(view, axis, Some(other)))
            .collect();
        if drawn.is_empty() && is_clock {
            figures.extend(figure(view, axis, None));
        }
        figures.extend(drawn);
    }
    figures
}

/// What the lines are for: parameters first.
fn companions(view: &View<'_>, axis: &Axis) -> Vec<Axis> {
    let mut others: Vec<Axis> = view
        .varied
        .iter()
        .filter(|other| *other != axis)
        .cloned()
        .collect();
    others.retain(|other| view.values(other).len() > 1);
    others.sort_by_key(|other| match other {
        Axis::Parameter(name) if name != BATCH_PARAMETER => 0,
        Axis::Parameter(_) => 1,
        Axis::MemoryClock => 2,
        Axis::Gpus => 3,
        Axis::CoreClock | Axis::PowerCap => 4,
    });
    others.truncate(2);
    others
}

/// `value` of every configuration along `axis`, others as in `held`.
fn line(
    view: &View<'_>,
    axis: &Axis,
    held: &Configuration,
    objective: Objective,
    unit: Unit,
) -> Vec<Dot> {
    let ruler = view.ruler(axis);
    let slice = view.slice(axis, held);
    slice
        .into_iter()
        .filter_map(|index| {
            let point = &view.study.points[index];
            let x = view.place(&ruler, axis, point)?;
            let estimate = view.estimate(index, objective)?;
            let text = format!(
                "{}\n{}",
                view.setting(index),
                amount(estimate.value, unit.0)
            );
            Some(super::dot(x, &estimate, unit.1, text))
        })
        .collect()
}

/// The unit of a value, and what makes it the unit of the axis.
#[derive(Clone, Copy)]
struct Unit(&'static str, f64);

fn figure(view: &View<'_>, axis: &Axis, by: Option<&Axis>) -> Option<Figure> {
    let chosen = view
        .chosen()
        .map(|index| &view.study.points[index].configuration);
    let held = chosen.unwrap_or(&view.study.reference.configuration);
    let performance = match view.has_items() {
        true => (
            "Performance [items/s]",
            Objective::Throughput,
            Unit("items/s", 1.0),
        ),
        false => ("Time [s]", Objective::Time, Unit("s", 1.0)),
    };
    let energy = match view.has_items() {
        true => (
            "Energy [J/item]",
            Objective::EnergyPerItem,
            Unit("J/item", 1.0),
        ),
        false => ("Energy [kJ]", Objective::Energy, Unit("J", 1e-3)),
    };
    let drawn = [
        performance,
        ("Power [W]", Objective::Power, Unit("W", 1.0)),
        energy,
    ];
    let values: Vec<Option<String>> = match by {
        None => vec![None],
        Some(by) => spread(view.values(by)).into_iter().map(Some).collect(),
    };
    let mut charts = Vec::new();
    for (title, objective, unit) in drawn {
        let mut lines = Vec::new();
        for (index, value) in values.iter().enumerate() {
            let held = match (by, value) {
                (Some(by), Some(value)) => match with(view, held, by, value) {
                    Some(held) => held,
                    None => continue,
                },
                _ => held.clone(),
            };
            let dots = line(view, axis, &held, objective, unit);
            if dots.len() > 1 {
                lines.push(Line {
                    label: by.map_or_else(String::new, |by| {
                        crate::configuration_text(std::slice::from_ref(by), &held)
                    }),
                    hue: Hue::of(index),
                    dots,
                    look: Look::Dotted,
                });
            }
        }
        if !lines.is_empty() {
            charts.push(Chart {
                title: title.to_owned(),
                x: view.ruler(axis),
                y: super::Ruler {
                    label: title.to_owned(),
                    from_zero: true,
                    ..super::Ruler::default()
                },
                lines,
                ..Chart::default()
            });
        }
    }
    // One line alone tells nothing of the other axis.
    let least = if by.is_some() { 2 } else { 1 };
    if charts.iter().all(|chart| chart.lines.len() < least) {
        return None;
    }
    let others: Vec<String> = view
        .varied
        .iter()
        .filter(|other| *other != axis && Some(*other) != by)
        .filter_map(|other| Some(format!("{} {}", axis_name(other), other.text(held)?)))
        .collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(" Held as chosen: {}.", others.join(", ")),
    };
    let name = by.map_or_else(String::new, |by| format!("-by-{}", by.name()));
    Some(Figure {
        id: format!("performance-power-energy-{}{name}", axis.name()),
        title: match by {
            Some(by) => format!(
                "Performance, power and energy: {} by {}",
                axis_name(axis),
                axis_name(by)
            ),
            None => format!("Performance, power and energy: {}", axis_name(axis)),
        },
        caption: format!("As measured, with 95 % intervals.{others}"),
        charts,
    })
}

/// The configuration with another value of an axis, from a point that has it.
pub fn with(
    view: &View<'_>,
    held: &Configuration,
    axis: &Axis,
    value: &str,
) -> Option<Configuration> {
    let points = view.study.points.iter();
    let donor = points
        .map(|point| &point.configuration)
        .find(|configuration| axis.text(configuration).as_deref() == Some(value))?;
    let mut made = held.clone();
    match axis {
        Axis::Gpus => made.gpus = donor.gpus,
        Axis::PowerCap => made.power_caps.clone_from(&donor.power_caps),
        Axis::CoreClock => made.core_clock = donor.core_clock,
        Axis::MemoryClock => made.memory_clock = donor.memory_clock,
        Axis::Parameter(name) => {
            made.parameters.insert(name.clone(), value.to_owned());
        }
    }
    Some(made)
}

/// Of many values, some from end to end.
pub fn spread(values: Vec<String>) -> Vec<String> {
    let count = values.len();
    if count <= MOST_LINES {
        return values;
    }
    let mut places: Vec<usize> = (0..MOST_LINES)
        .map(|place| place * (count - 1) / (MOST_LINES - 1))
        .collect();
    places.dedup();
    places
        .into_iter()
        .map(|place| values[place].clone())
        .collect()
}
