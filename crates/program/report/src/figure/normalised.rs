//! Normalised power, energy, time, EDP and EDS against each knob (power_capping_2022, figures 2 and 3).

use sweetspot_decide::{Estimate, Objective};
use sweetspot_study::{Axis, Configuration};

use super::chart::{
    AxisKind, Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle, ReferenceLine,
};
use super::palette::{METRICS, colour_of};
use crate::analysis::view::StudyView;
use crate::settings::{axis_name, setting, value_text};

/// Makes a figure for each knob that the study varies.
pub fn normalised_curves(view: &StudyView<'_>) -> Vec<Figure> {
    view.varied
        .iter()
        .filter_map(|axis| knob_figure(view, axis))
        .collect()
}

/// Makes the figure of one knob; `None` if there is nothing to compare.
fn knob_figure(view: &StudyView<'_>, axis: &Axis) -> Option<Figure> {
    view.comparison.reference()?;
    let reference = &view.study.reference;
    let mut fixed: Vec<(&str, &Configuration)> = vec![("reference", &reference.configuration)];
    let chosen = view.chosen().map(|index| &view.study.points[index]);
    let others = view.others(axis);
    if let Some(chosen) = chosen
        && others
            .iter()
            .any(|axis| axis.text(&chosen.configuration) != axis.text(&reference.configuration))
    {
        fixed.push(("choice", &chosen.configuration));
    }
    let charts: Vec<Chart> = fixed
        .iter()
        .filter_map(|(_, configuration)| chart(view, axis, configuration))
        .collect();
    if charts.is_empty() {
        return None;
    }
    let others = match (others.is_empty(), fixed.len()) {
        (true, _) => String::new(),
        (false, 1) => format!(" The other knobs are at {}.", setting(&others, reference)),
        (false, _) => " The other knobs are as written above each chart.".to_owned(),
    };
    Some(Figure {
        id: format!("curves-{}", axis.name()),
        title: format!("What the {} does", axis_name(axis)),
        caption: format!(
            "Each value against that of the reference ({}), with 95 % intervals if they are large enough to see. Below 1 is better, for time as for energy.{others}",
            view.reference_setting()
        ),
        charts,
    })
}

/// Makes the chart of one knob, with the other axes as in `fixed`.
fn chart(view: &StudyView<'_>, axis: &Axis, fixed: &Configuration) -> Option<Chart> {
    let chart_axis = view.chart_axis(axis);
    let slice: Vec<(f64, usize)> = view
        .slice(axis, fixed)
        .into_iter()
        .filter_map(|index| {
            let place = view.place(&chart_axis, axis, &view.study.points[index])?;
            view.mean(index)?;
            Some((place, index))
        })
        .collect();
    if slice.len() < 2 {
        return None;
    }
    let lines = lines(view, axis, &slice);
    if lines.is_empty() {
        return None;
    }
    Some(Chart {
        title: title(view, axis, fixed),
        reference_lines: reference_lines(view, axis, &chart_axis, &slice),
        x: chart_axis,
        y: ChartAxis {
            kind: ratio_axis(&lines),
            ..ChartAxis::default()
        },
        is_wide: view.varied.len() == 1,
        lines,
        ..Chart::default()
    })
}

/// Makes a line for each normalised quantity.
fn lines(view: &StudyView<'_>, axis: &Axis, slice: &[(f64, usize)]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (label, objective) in METRICS {
        let Some(scale) = reference_scale(view, objective) else {
            continue;
        };
        let dots: Vec<Dot> = slice
            .iter()
            .filter_map(|(x, index)| {
                let estimate = view.estimate(*index, objective)?;
                let setting = value_text(axis, &view.study.points[*index]);
                Some(super::dot(
                    *x,
                    &estimate,
                    scale,
                    hover_text(label, &setting, &estimate, scale),
                ))
            })
            .collect();
        if dots.len() > 1 {
            lines.push(Line {
                label: label.to_owned(),
                colour: colour_of(objective),
                dots,
                style: LineStyle::PointsAndLine,
            });
        }
    }
    lines
}

/// Makes the title of a chart: the values of the other axes.
fn title(view: &StudyView<'_>, axis: &Axis, fixed: &Configuration) -> String {
    let others = view.others(axis);
    match others.is_empty() {
        true => "Reference = 1".to_owned(),
        false => {
            let others = others.iter().filter_map(|other| {
                let text = other.text(fixed)?;
                Some(match other {
                    Axis::Gpus => format!("{text} GPUs"),
                    Axis::PowerCap => format!("{text} W"),
                    Axis::MemoryClock => format!("memory {text} MHz"),
                    Axis::CoreClock => format!("{text} MHz"),
                    Axis::CpuPowerCap => format!("CPU {text} W"),
                    Axis::Parameter(name) => format!("{name} {text}"),
                })
            });
            format!("{}; reference = 1", others.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Marks the reference's value, and the choice if it is among the drawn points.
fn reference_lines(
    view: &StudyView<'_>,
    axis: &Axis,
    chart_axis: &ChartAxis,
    slice: &[(f64, usize)],
) -> Vec<ReferenceLine> {
    let mut reference_lines = vec![ReferenceLine {
        is_vertical: false,
        at: 1.0,
        label: String::new(),
        colour: Colour::GREY,
    }];
    let in_slice = |index: &usize| slice.iter().any(|(_, at)| at == index);
    if let Some(chosen) = view.chosen().filter(in_slice)
        && let Some(at) = view.place(chart_axis, axis, &view.study.points[chosen])
    {
        reference_lines.push(ReferenceLine {
            is_vertical: true,
            at,
            label: format!(
                "{}: {}",
                view.chosen_name(),
                value_text(axis, &view.study.points[chosen])
            ),
            colour: Colour::CHOICE,
        });
    }
    reference_lines
}

/// Chooses a logarithmic axis for ratios that differ widely.
fn ratio_axis(lines: &[Line]) -> AxisKind {
    let values = || lines.iter().flat_map(|line| &line.dots).map(|dot| dot.y);
    let (low, high) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(0.0, f64::max),
    );
    match low > 0.0 && high / low > 6.0 && high > 2.5 {
        true => {
            let all = (-10..12).map(|power| 2f64.powi(power));
            AxisKind::Logarithmic(
                all.filter(|value| (low / 1.3..=high * 1.3).contains(value))
                    .collect(),
            )
        }
        false => AxisKind::Linear,
    }
}

/// Returns the factor that scales the reference's value to 1; `None` if the reference has no value.
fn reference_scale(view: &StudyView<'_>, objective: Objective) -> Option<f64> {
    if objective.needs_reference() {
        return Some(1.0);
    }
    let value = objective
        .value(view.comparison.reference()?, view.comparison.basis())
        .ok()?;
    Some(1.0 / value).filter(|scale| scale.is_finite())
}

/// The text that is shown when the pointer is over a data point.
fn hover_text(label: &str, setting: &str, estimate: &Estimate, scale: f64) -> String {
    let span = estimate.interval95.map_or_else(String::new, |span| {
        format!(" ± {:.3}", scale * (span.high - span.low) / 2.0)
    });
    format!("{setting}\n{label} {:.3}{span}", estimate.value * scale)
}
