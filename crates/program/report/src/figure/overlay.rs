//! The curves of several studies in one chart (multi_gpu_2018, figures 5 to 8).

use sweetspot_decide::Objective;
use sweetspot_study::{Axis, Configuration};

use super::chart::{AxisKind, Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle};
use super::performance::{spread_values, with_axis_value};
use crate::analysis::view::StudyView;
use crate::compare::{ComparedStudy, StudyComparison};
use crate::settings::axis_name;
use crate::wording::format_amount;

/// The largest number of lines in a chart.
const MAX_LINES: usize = 8;

/// Makes a figure for each numeric axis that a study varies.
pub fn overlays(compared: &StudyComparison<'_>) -> Vec<Figure> {
    let axes = compared.axes.iter();
    super::with_unique_ids(axes.filter_map(|axis| overlay(compared, axis)).collect())
}

/// Makes the figure of one axis; `None` if no study has enough values.
fn overlay(compared: &StudyComparison<'_>, axis: &Axis) -> Option<Figure> {
    let items = compared.studies.iter().all(|side| side.view.has_items());
    let drawn = match items {
        true => [
            ("Time [ms/item]", Objective::Throughput, "ms/item"),
            ("Energy [J/item]", Objective::EnergyPerItem, "J/item"),
            ("Power [W]", Objective::Power, "W"),
        ],
        false => [
            ("Time [s]", Objective::Time, "s"),
            ("Energy [J]", Objective::Energy, "J"),
            ("Power [W]", Objective::Power, "W"),
        ],
    };
    let x = common_axis(compared, axis)?;
    let mut charts = Vec::new();
    for (title, objective, unit) in drawn {
        let lines = lines(compared, axis, objective, unit);
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

/// Makes the lines of every study that varies the axis.
fn lines(
    compared: &StudyComparison<'_>,
    axis: &Axis,
    objective: Objective,
    unit: &str,
) -> Vec<Line> {
    let other = second_axis(compared, axis);
    let mut lines = Vec::new();
    for (index, study) in compared.studies.iter().enumerate() {
        if !study.view.is_numeric(axis) {
            continue;
        }
        for (name, fixed) in line_configurations(study, other.as_ref()) {
            let slice = study.view.slice(axis, &fixed).into_iter();
            let dots = slice.filter_map(|point| {
                let mut dot = dot(&study.view, axis, point, objective)?;
                let setting = study.view.setting(point);
                dot.text = format!("{name}, {setting}\n{}", format_amount(dot.y, unit));
                dot.y.is_finite().then_some(dot)
            });
            let dots: Vec<Dot> = dots.collect();
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
    lines
}

/// Returns each line's label and configuration: one for each value of the other axis, or one for the study.
fn line_configurations(
    study: &ComparedStudy<'_>,
    other: Option<&Axis>,
) -> Vec<(String, Configuration)> {
    let view = &study.view;
    let reference = &view.study.reference.configuration;
    let Some(other) = other else {
        return vec![(study.name.clone(), reference.clone())];
    };
    let values = spread_values(view.values(other)).into_iter();
    values
        .filter_map(|value| {
            let fixed = with_axis_value(view, reference, other, &value)?;
            let name = crate::settings::configuration_text(std::slice::from_ref(other), &fixed);
            Some((format!("{}, {name}", study.name), fixed))
        })
        .collect()
}

/// Makes a data point without a text; throughput is drawn as the time of an item in milliseconds.
fn dot(view: &StudyView<'_>, axis: &Axis, point: usize, objective: Objective) -> Option<Dot> {
    let x = axis.number(&view.study.points[point].configuration)?;
    let estimate = view.estimate(point, objective)?;
    let mut dot = super::dot(x, &estimate, 1.0, String::new());
    if objective == Objective::Throughput {
        dot.span = dot.span.map(|(low, high)| (1e3 / high, 1e3 / low));
        dot.y = 1e3 / dot.y;
    }
    Some(dot)
}

/// Returns another axis with two to four values, such as the number of GPUs; each of its values gets a line.
fn second_axis(compared: &StudyComparison<'_>, axis: &Axis) -> Option<Axis> {
    let others = compared.axes.iter().filter(|other| *other != axis);
    let mut few = others.filter(|other| {
        let counts = compared
            .studies
            .iter()
            .map(|side| side.view.values(other).len());
        counts.max().is_some_and(|most| (2..=4).contains(&most))
    });
    few.next().cloned()
}

/// Makes a chart axis whose range includes the values of all studies.
fn common_axis(compared: &StudyComparison<'_>, axis: &Axis) -> Option<ChartAxis> {
    let sides = compared
        .studies
        .iter()
        .filter(|side| side.view.is_numeric(axis));
    let chart_axes: Vec<ChartAxis> = sides.map(|side| side.view.chart_axis(axis)).collect();
    let mut marks: Vec<f64> = Vec::new();
    let mut doubling = true;
    for chart_axis in &chart_axes {
        match &chart_axis.kind {
            AxisKind::Logarithmic(values) => marks.extend(values),
            _ => doubling = false,
        }
    }
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    chart_axes.into_iter().next().map(|chart_axis| ChartAxis {
        label: chart_axis.label,
        kind: if doubling {
            AxisKind::Logarithmic(marks)
        } else {
            AxisKind::Linear
        },
        ..ChartAxis::default()
    })
}
