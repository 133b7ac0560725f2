//! The figures of a paper: reproduced lines, and the points that the paper prints.

use sweetspot_papers::{Panel, PaperCurve, PaperFigure, Reproduction};

use crate::figure::{
    AxisKind, Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle, colour_of, number,
    with_unique_ids,
};

/// Draws every figure of a paper that can be reproduced.
pub fn reproduction_figures(study: &Reproduction) -> Vec<Figure> {
    let figures = study.figures.iter();
    let figures = figures.filter(|figure| !figure.panels.is_empty());
    with_unique_ids(figures.map(|one| figure(study.paper, one)).collect())
}

/// Draws one figure.
fn figure(paper: &str, figure: &PaperFigure) -> Figure {
    let has_published = figure
        .panels
        .iter()
        .flat_map(|panel| &panel.curves)
        .any(|curve| !curve.published.is_empty());
    let points = match has_published {
        true => "Lines and filled points are reproduced, hollow points are published. ",
        false => "Reproduced. ",
    };
    Figure {
        id: format!("figure-{}", figure.number),
        title: format!("{paper}, figure {}: {}", figure.number, figure.title),
        caption: format!("{points}{}", figure.caption),
        charts: figure
            .panels
            .iter()
            .map(|panel| chart(panel, figure.panels.len() == 1))
            .collect(),
    }
}

/// Draws one panel.
fn chart(panel: &Panel, is_alone: bool) -> Chart {
    let mut lines = Vec::new();
    // Beside metrics, the colours of settings would look like those of metrics.
    let has_metrics = panel.curves.iter().any(|curve| curve.objective.is_some());
    for (index, curve) in panel.curves.iter().enumerate() {
        let colour = match (curve.objective, has_metrics) {
            (Some(objective), _) => colour_of(objective),
            (None, true) => Colour::FRONT,
            (None, false) => Colour::of(index),
        };
        lines.extend(curve_lines(panel, curve, colour));
    }
    for (style, name) in [
        (LineStyle::Published, "published"),
        (LineStyle::Level, "published, cap or clock unknown"),
    ] {
        if lines.iter().any(|line| line.style == style) {
            lines.push(Line {
                label: name.to_owned(),
                colour: Colour::GREY,
                dots: Vec::new(),
                style,
            });
        }
    }
    let mut values: Vec<f64> = lines
        .iter()
        .flat_map(|line| &line.dots)
        .map(|dot| dot.x)
        .collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    Chart {
        title: match panel.title.is_empty() {
            true => panel.y.clone(),
            false => panel.title.clone(),
        },
        x: ChartAxis {
            label: panel.x.clone(),
            kind: match panel.is_doubling {
                true => AxisKind::Logarithmic(values),
                false => AxisKind::Linear,
            },
            ..ChartAxis::default()
        },
        y: ChartAxis {
            label: panel.y.clone(),
            includes_zero: panel.from_zero,
            ..ChartAxis::default()
        },
        lines,
        is_wide: is_alone,
        has_legend: true,
        ..Chart::default()
    }
}

/// The lines of a curve: its reproduced values, its published points, and its published level.
fn curve_lines(panel: &Panel, curve: &PaperCurve, colour: Colour) -> Vec<Line> {
    let dots = |points: &[(f64, f64)], what: &str| -> Vec<Dot> {
        let dots = points.iter().map(|(x, y)| Dot {
            x: *x,
            y: *y,
            span: None,
            text: format!("{}, {what}\n{}: {}", curve.name, number(*x), number(*y)),
        });
        dots.collect()
    };
    let line = |label: &str, dots: Vec<Dot>, style: LineStyle| Line {
        label: label.to_owned(),
        colour,
        dots,
        style,
    };
    let style = match (curve.is_guide, panel.is_unordered) {
        (true, _) => LineStyle::Guide,
        (false, true) => LineStyle::Points,
        (false, false) => LineStyle::PointsAndLine,
    };
    let mut lines = vec![line(
        &curve.name,
        dots(&curve.reproduced, "reproduced"),
        style,
    )];
    if !curve.published.is_empty() {
        let published = dots(&curve.published, "published");
        lines.push(line("", published, LineStyle::Published));
    }
    let xs = || {
        let curves = panel.curves.iter();
        curves.flat_map(|curve| curve.reproduced.iter().map(|(x, _)| *x))
    };
    let ends = xs().reduce(f64::min).zip(xs().reduce(f64::max));
    if let Some(((first, last), level)) = ends.zip(curve.published_level) {
        let points = [(first, level), (last, level)];
        // A guide does not extend the axes, so that a level needs points that do.
        lines.push(line("", dots(&points, "published"), LineStyle::Level));
    }
    lines
}
