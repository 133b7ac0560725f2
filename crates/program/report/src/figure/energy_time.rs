//! The energy-time plane (power_capping_2022, figure 1).

use sweetspot_decide::Aim;

use super::chart::{Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle};
use crate::analysis::view::StudyView;
use crate::wording::format_percent;

/// Draws every configuration by its time and energy against the reference, with lines on which each metric equals
/// that of the reference.
pub fn energy_time_plane(view: &StudyView<'_>) -> Option<Figure> {
    let count = view.study.points.len();
    let known: Vec<(usize, f64, f64)> = (0..count)
        .filter_map(|index| {
            let (time, energy) = view.relative(index)?;
            Some((index, time, energy))
        })
        .collect();
    if known.len() < 2 {
        return None;
    }
    let dot = |index: usize, time: f64, energy: f64| Dot {
        x: time,
        y: energy,
        span: None,
        text: format!(
            "{}\ntime {}, energy {}",
            view.setting(index),
            format_percent(time - 1.0),
            format_percent(energy - 1.0)
        ),
    };
    let of = |index: usize| {
        let (time, energy) = view.relative(index)?;
        Some(dot(index, time, energy))
    };
    let mut front: Vec<Dot> = view
        .comparison
        .pareto(&Aim::TIME_AND_ENERGY)
        .into_iter()
        .filter_map(of)
        .collect();
    front.sort_by(|a, b| a.x.total_cmp(&b.x));
    let shown = front.iter().cloned().chain(view.chosen().and_then(of));
    let (most_time, most_energy) = edges(shown);
    let is_near =
        |(_, time, energy): &&(usize, f64, f64)| *time <= most_time && *energy <= most_energy;
    let near: Vec<&(usize, f64, f64)> = known.iter().filter(is_near).collect();
    let (left, right) = bounds(near.iter().map(|(_, time, _)| *time));
    let mut lines = metric_lines(left, right);
    let all = near
        .iter()
        .map(|(index, time, energy)| dot(*index, *time, *energy));
    lines.push(Line {
        label: String::new(),
        colour: Colour::GREY,
        dots: all.collect(),
        style: LineStyle::Points,
    });
    let beyond = match known.len() - near.len() {
        0 => String::new(),
        1 => " 1 configuration that is far worse lies beyond the edges.".to_owned(),
        count => format!(" {count} configurations that are far worse lie beyond the edges."),
    };

    lines.push(Line {
        label: String::new(),
        colour: Colour(0),
        dots: front,
        style: LineStyle::PointsAndLine,
    });
    let mark = |label: &str, colour: Colour, dot: Dot| Line {
        label: label.to_owned(),
        colour,
        dots: vec![dot],
        style: LineStyle::Markers,
    };
    let mut reference = dot(0, 1.0, 1.0);
    reference.text = format!("reference: {}", view.reference_setting());
    let name = format!("reference: {}", view.reference_setting());
    lines.push(mark(&super::shortened(&name, 40), Colour::GREY, reference));
    let chosen = view
        .chosen()
        .filter(|chosen| Some(*chosen) != view.reference_index());
    lines.extend(chosen.and_then(of).map(|mut dot| {
        let name = dot.text.lines().next().unwrap_or_default();
        let name = super::shortened(&format!("{}: {name}", view.chosen_name()), 40);
        dot.text = format!("{}: {}", view.chosen_name(), dot.text);
        mark(&name, Colour(1), dot)
    }));
    let chart = Chart {
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
    };
    Some(Figure {
        id: "energy-time".to_owned(),
        title: "Energy against time".to_owned(),
        caption: format!(
            "Each dot is a configuration, against the reference ({}) at 1, 1. Below a dashed line that metric is better than at the reference. The blue line is the Pareto front: no configuration is both faster and uses less energy. The large orange dot is the {}.{beyond}",
            view.reference_setting(),
            view.chosen_name()
        ),
        charts: vec![chart],
    })
}

/// Returns the lines on which E, EDP and EDS equal those of the reference.
fn metric_lines(left: f64, right: f64) -> Vec<Line> {
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
    let lines: [(&str, Colour, Vec<Dot>); 4] = [
        ("E", Colour(7), along(&|_| 1.0)),
        ("EDP", Colour(2), along(&|time| 1.0 / time)),
        ("EDS(k=2.0)", Colour(3), along(&sum(2.0))),
        ("EDS(k=1.5)", Colour(4), along(&sum(1.5))),
    ];
    lines
        .into_iter()
        .map(|(label, colour, dots)| Line {
            label: label.to_owned(),
            colour,
            dots,
            style: LineStyle::Guide,
        })
        .collect()
}

/// Returns the largest time and energy to show: somewhat beyond the Pareto front, the reference and the choice,
/// so that these are not squeezed into a corner.
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

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((1.0f64, 1.0f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    (low, high + 0.02 * (high - low))
}
