//! The energy-time plane (power_capping_2022, figure 1).

use sweetspot_decide::{Aim, Objective};

use super::chart::{Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle};
use super::palette::colour_of;
use crate::analysis::view::StudyView;
use crate::wording::format_percent;

/// Draws every configuration by its time and energy relative to the reference, with lines on which each metric equals
/// that of the reference.
pub fn energy_time_plane(view: &StudyView<'_>) -> Option<Figure> {
    let points = 0..view.study.points.len();
    let known: Vec<Dot> = points.filter_map(|index| dot(view, index)).collect();
    if known.len() < 2 {
        return None;
    }
    let front = view.comparison.pareto(&Aim::TIME_AND_ENERGY).into_iter();
    let mut front: Vec<Dot> = front.filter_map(|index| dot(view, index)).collect();
    front.sort_by(|a, b| a.x.total_cmp(&b.x));
    let chosen = view.chosen().and_then(|index| dot(view, index));
    let (max_time, max_energy) = edges(front.iter().cloned().chain(chosen));
    let (near, far): (Vec<Dot>, Vec<Dot>) = known
        .into_iter()
        .partition(|dot| dot.x <= max_time && dot.y <= max_energy);
    let (left, right) = bounds(near.iter().map(|dot| dot.x));
    let mut lines = metric_lines(left, right);
    let line = |colour, dots, style| Line {
        label: String::new(),
        colour,
        dots,
        style,
    };
    lines.push(line(Colour::GREY, near, LineStyle::Points));
    lines.push(line(Colour::FRONT, front, LineStyle::PointsAndLine));
    lines.extend(markers(view));
    let beyond = match far.len() {
        0 => String::new(),
        1 => " 1 configuration that is far worse lies beyond the edges.".to_owned(),
        count => format!(" {count} configurations that are far worse lie beyond the edges."),
    };
    Some(Figure {
        id: "energy-time".to_owned(),
        title: "Energy against time".to_owned(),
        caption: format!(
            "Each dot is a configuration, against the reference ({}) at 1, 1. Below a dashed line that metric is better than at the reference. The solid line is the Pareto front: no configuration is both faster and uses less energy. The large dark dot is the {}.{beyond}",
            view.reference_setting(),
            view.chosen_name()
        ),
        charts: vec![Chart {
            title: "Energy [reference = 1]".to_owned(),
            x: ChartAxis {
                label: "Time [reference = 1]".to_owned(),
                ..ChartAxis::default()
            },
            y: ChartAxis {
                label: "Energy [reference = 1]".to_owned(),
                ..ChartAxis::default()
            },
            lines,
            is_wide: true,
            ..Chart::default()
        }],
    })
}

/// Makes the data point of a configuration; `None` if its time or energy is unknown.
fn dot(view: &StudyView<'_>, index: usize) -> Option<Dot> {
    let (time, energy) = view.relative(index)?;
    Some(Dot {
        x: time,
        y: energy,
        span: None,
        text: format!(
            "{}\ntime {}, energy {}",
            view.setting(index),
            format_percent(time - 1.0),
            format_percent(energy - 1.0)
        ),
    })
}

/// Marks the reference, and the choice if it is another configuration.
fn markers(view: &StudyView<'_>) -> Vec<Line> {
    let marker = |label: &str, colour: Colour, dot: Dot| Line {
        label: super::shortened(label, 60),
        colour,
        dots: vec![dot],
        style: LineStyle::Markers,
    };
    let name = format!("reference: {}", view.reference_setting());
    let reference = Dot {
        x: 1.0,
        y: 1.0,
        span: None,
        text: name.clone(),
    };
    let mut lines = vec![marker(&name, Colour::GREY, reference)];
    let chosen = view
        .chosen()
        .filter(|chosen| Some(*chosen) != view.reference_index());
    lines.extend(chosen.and_then(|chosen| {
        let mut dot = dot(view, chosen)?;
        let name = format!("{}: {}", view.chosen_name(), view.setting(chosen));
        dot.text = format!("{}: {}", view.chosen_name(), dot.text);
        Some(marker(&name, Colour::CHOICE, dot))
    }));
    lines
}

/// Returns the lines on which E, EDP and EDS equal those of the reference.
fn metric_lines(left: f64, right: f64) -> Vec<Line> {
    /// The number of segments of a drawn curve.
    const STEPS: usize = 60;
    let along = |of: &dyn Fn(f64) -> f64| -> Vec<Dot> {
        (0..=STEPS)
            .map(|step| left + (right - left) * step as f64 / STEPS as f64)
            .map(|x| Dot {
                x,
                y: of(x),
                ..Dot::default()
            })
            .collect()
    };
    // EDS(k) = 1 where (k-1) E + t = k.
    let sum = |k: f64| move |time: f64| (k - time) / (k - 1.0);
    let lines: [(&str, Objective, Vec<Dot>); 4] = [
        ("E", Objective::Energy, along(&|_| 1.0)),
        ("EDP", Objective::Edp, along(&|time| 1.0 / time)),
        ("EDS(k=2.0)", Objective::Eds(2.0), along(&sum(2.0))),
        ("EDS(k=1.5)", Objective::Eds(1.5), along(&sum(1.5))),
    ];
    lines
        .into_iter()
        .map(|(label, objective, dots)| Line {
            label: label.to_owned(),
            colour: colour_of(objective),
            dots,
            style: LineStyle::Guide,
        })
        .collect()
}

/// Returns the largest time and energy to show: somewhat beyond the Pareto front, the reference and the choice, so
/// these are not squeezed into a corner.
fn edges(shown: impl Iterator<Item = Dot>) -> (f64, f64) {
    let ends = (1.0f64, 1.0f64, 1.0f64, 1.0f64);
    let (left, right, low, high) = shown.fold(ends, |(left, right, low, high), dot| {
        (
            left.min(dot.x),
            right.max(dot.x),
            low.min(dot.y),
            high.max(dot.y),
        )
    });
    (
        right + (right - left).max(0.15),
        high + 0.8 * (high - low).max(0.15),
    )
}

/// The smallest and the largest of some values.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((1.0f64, 1.0f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    (low, high + 0.02 * (high - low))
}
