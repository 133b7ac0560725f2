//! The curves of several studies in one chart (multi_gpu_2018, figures 5 to 8).

use sweetspot_decide::Objective;
use sweetspot_study::Axis;

use super::chart::{AxisKind, Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle};
use crate::analysis::choices::axis_name;
use crate::compare::StudyComparison;
use crate::wording::format_amount;

const MAX_LINES: usize = 8;

/// Makes a figure for each numeric axis that a study varies.
pub fn overlays(compared: &StudyComparison<'_>) -> Vec<Figure> {
    let axes = compared.axes.iter();
    super::with_unique_ids(axes.filter_map(|axis| overlay(compared, axis)).collect())
}

fn overlay(compared: &StudyComparison<'_>, axis: &Axis) -> Option<Figure> {
    let items = compared.sides.iter().all(|side| side.view.has_items());
    let drawn = match items {
        true => [
            ("Time [ms/item]", Objective::Throughput, ""),
            ("Energy [J/item]", Objective::EnergyPerItem, "J/item"),
            ("Power [W]", Objective::Power, "W"),
        ],
        false => [
            ("Time [s]", Objective::Time, "s"),
            ("Energy [J]", Objective::Energy, "J"),
            ("Power [W]", Objective::Power, "W"),
        ],
    };
    let numeric = |side: &&crate::compare::ComparedStudy<'_>| side.view.is_numeric(axis);
    let x = ruler(compared, axis)?;
    let other = second_axis(compared, axis);
    let mut charts = Vec::new();
    for (title, objective, unit) in drawn {
        let mut lines = Vec::new();
        for (index, side) in compared
            .sides
            .iter()
            .enumerate()
            .filter(|(_, side)| numeric(side))
        {
            let view = &side.view;
            let reference = &view.study.reference.configuration;
            let held = match &other {
                Some(other) => super::clocks::spread(view.values(other))
                    .iter()
                    .filter_map(|value| {
                        let held = super::clocks::with(view, reference, other, value)?;
                        let name = crate::configuration_text(std::slice::from_ref(other), &held);
                        Some((format!("{}, {name}", side.name), held))
                    })
                    .collect(),
                None => vec![(side.name.clone(), reference.clone())],
            };
            for (name, held) in held {
                let dots: Vec<Dot> = view
                    .slice(axis, &held)
                    .into_iter()
                    .filter_map(|point| {
                        let x = axis.number(&view.study.points[point].configuration)?;
                        let estimate = view.estimate(point, objective)?;
                        let mut dot = super::dot(x, &estimate, 1.0, String::new());
                        let mut unit = unit;
                        if objective == Objective::Throughput {
                            dot.span = dot.span.map(|(low, high)| (1e3 / high, 1e3 / low));
                            dot.y = 1e3 / dot.y;
                            unit = "ms/item";
                        }
                        dot.text = format!(
                            "{name}, {}\n{}",
                            view.setting(point),
                            format_amount(dot.y, unit)
                        );
                        dot.y.is_finite().then_some(dot)
                    })
                    .collect();
                if dots.len() > 1 && lines.len() < MAX_LINES {
                    let colour = if other.is_some() { lines.len() } else { index };
                    lines.push(Line {
                        label: name,
                        colour: Colour::of(colour),
                        dots,
                        style: LineStyle::PointsAndLine,
                    });
                }
            }
        }
        if !lines.is_empty() {
            charts.push(Chart {
                title: title.to_owned(),
                x: ChartAxis {
                    label: x.label.clone(),
                    kind: x.kind.clone(),
                    ..ChartAxis::default()
                },
                y: ChartAxis::from_zero(title.to_owned()),
                lines,
                ..Chart::default()
            });
        }
    }
    (!charts.is_empty()).then(|| Figure {
        id: format!("compare-{}", axis.name()),
        title: format!("By {}", axis_name(axis)),
        caption: "Every study at its own values, with 95 % intervals; other knobs are as at its own reference."
            .to_owned(),
        charts,
    })
}

/// Returns another axis with two to four values, such as the number of GPUs.
fn second_axis(compared: &StudyComparison<'_>, axis: &Axis) -> Option<Axis> {
    let others = compared.axes.iter().filter(|other| *other != axis);
    let mut few = others.filter(|other| {
        let counts = compared
            .sides
            .iter()
            .map(|side| side.view.values(other).len());
        counts.max().is_some_and(|most| (2..=4).contains(&most))
    });
    few.next().cloned()
}

/// Makes a chart axis that fits all studies.
fn ruler(compared: &StudyComparison<'_>, axis: &Axis) -> Option<ChartAxis> {
    let sides = compared
        .sides
        .iter()
        .filter(|side| side.view.is_numeric(axis));
    let rulers: Vec<ChartAxis> = sides.map(|side| side.view.ruler(axis)).collect();
    let mut marks: Vec<f64> = Vec::new();
    let mut doubling = true;
    for ruler in &rulers {
        match &ruler.kind {
            AxisKind::Logarithmic(values) => marks.extend(values),
            _ => doubling = false,
        }
    }
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    rulers.into_iter().next().map(|ruler| ChartAxis {
        label: ruler.label,
        kind: if doubling {
            AxisKind::Logarithmic(marks)
        } else {
            AxisKind::Linear
        },
        ..ChartAxis::default()
    })
}
