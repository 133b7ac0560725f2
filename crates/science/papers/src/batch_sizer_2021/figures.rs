//! The figures of batch_sizer_2021 with results, from the rows of the reproduction.

use std::collections::BTreeMap;

use crate::figure::{FigureNotDrawn, Panel, PaperCurve, PaperFigure, has_label, number_of};
use crate::row::{Label, ReproducedRow};

/// The figures that are not drawn.
pub(super) const NOT_DRAWN: [FigureNotDrawn; 3] = [
    FigureNotDrawn {
        number: "2",
        reason: "the paper prints none of its numbers, and the simulator has no utilisation of a network's layers",
    },
    FigureNotDrawn {
        number: "3",
        reason: "it is a flow diagram of the algorithm",
    },
    FigureNotDrawn {
        number: "4",
        reason: "it is an example of the algorithm with made-up numbers",
    },
];

/// The reproduced points of rows that have the same labels, except for one number that becomes the horizontal axis.
fn points(
    rows: &[&ReproducedRow],
    x: &str,
    name: impl Fn(&ReproducedRow) -> String,
) -> BTreeMap<String, Vec<(f64, f64)>> {
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for row in rows {
        if let Some((x, y)) = number_of(row, x).zip(row.reproduced) {
            let scaled = y * row.kind.scale;
            lines.entry(name(row)).or_default().push((x, scaled));
        }
    }
    lines
}

/// The text of a label of a row.
fn label(row: &ReproducedRow, name: &str) -> String {
    let found = row.row.iter().find(|(known, _)| *known == name);
    found.map_or_else(String::new, |(_, label)| match label {
        Label::Text(text) => text.clone(),
        Label::Number(number) => number.to_string(),
    })
}

/// The name of a control algorithm in figures.
fn mode(row: &ReproducedRow) -> String {
    match label(row, "mode").as_str() {
        "windowed" => "BatchSizer".to_owned(),
        "dvfs" => "DVFS".to_owned(),
        other => other.to_owned(),
    }
}

/// Figures 1 and 5 to 8.
pub(super) fn figures(rows: &[ReproducedRow]) -> Vec<PaperFigure> {
    let of = |table: &str, key: &str| -> Vec<&ReproducedRow> {
        let rows = rows.iter();
        rows.filter(|row| row.table == table && row.kind.key == key)
            .collect()
    };
    let mut figures = vec![figure_1(
        &of("figure 1", "items_per_s"),
        &of("figure 1", "power_w"),
    )];
    let speed = of("2, throughput in figure 5", "throughput_vs_dvfs");
    let batch = of("2, average batch in figure 6", "average_batch");
    figures.push(PaperFigure {
        number: "5".to_owned(),
        title: "Throughput of BatchSizer over DVFS".to_owned(),
        caption: "Published points: the two that the text gives, for jobs 5 and 19.".to_owned(),
        panels: vec![by_job(&speed, "Throughput over DVFS [%]")],
    });
    figures.push(PaperFigure {
        number: "6".to_owned(),
        title: "Average batch size of each job".to_owned(),
        caption:
            "The paper prints no numbers of this figure. DVFS has a constant batch size of 16."
                .to_owned(),
        panels: vec![by_job(&batch, "Average batch size")],
    });
    figures.push(over_time(
        "7",
        "Power of several jobs over time",
        &of("figure 7", "power_w"),
        "Mean power of a second [W]",
    ));
    figures.push(over_time(
        "8",
        "Batch size of several jobs over time",
        &of("figure 8", "batch"),
        "Batch size",
    ));
    figures
}

/// Figure 1: throughput and power by batch size, a panel for each data set.
fn figure_1(throughput: &[&ReproducedRow], power: &[&ReproducedRow]) -> PaperFigure {
    let mut panels = Vec::new();
    for (rows, y) in [
        (throughput, "Throughput [items/s]"),
        (power, "Power while computing [W]"),
    ] {
        for (dataset, title) in [("imagenet", "ImageNet"), ("caltech", "Caltech")] {
            let own: Vec<&ReproducedRow> = rows
                .iter()
                .copied()
                .filter(|row| has_label(row, "dataset", dataset))
                .collect();
            let lines = points(&own, "batch", |row| label(row, "network"));
            if lines.is_empty() {
                continue;
            }
            panels.push(Panel {
                title: title.to_owned(),
                x: "Batch size".to_owned(),
                y: y.to_owned(),
                is_doubling: true,
                from_zero: true,
                is_unordered: false,
                curves: lines
                    .into_iter()
                    .map(|(name, points)| PaperCurve::new(name, points))
                    .collect(),
            });
        }
    }
    PaperFigure {
        number: "1".to_owned(),
        title: "Throughput and power by batch size".to_owned(),
        caption: "The paper prints no numbers of this figure.".to_owned(),
        panels,
    }
}

/// A panel with a value of each job of table 2.
fn by_job(rows: &[&ReproducedRow], y: &str) -> Panel {
    let lines = points(rows, "job", mode).into_iter().map(|(name, here)| {
        let own = rows.iter().filter(|row| mode(row) == name);
        let known = own.filter_map(|row| {
            let printed = row.published? * row.kind.scale;
            Some((number_of(row, "job")?, printed))
        });
        PaperCurve::new(name.clone(), here).with_published(known.collect::<Vec<_>>())
    });
    Panel {
        title: "Jobs of table 2".to_owned(),
        x: "Job".to_owned(),
        y: y.to_owned(),
        is_unordered: true,
        from_zero: true,
        curves: lines.collect(),
        ..Panel::default()
    }
}

/// A figure with a panel for each job over time.
fn over_time(number: &str, title: &str, rows: &[&ReproducedRow], y: &str) -> PaperFigure {
    let mut jobs: Vec<f64> = rows
        .iter()
        .filter_map(|row| number_of(row, "job"))
        .collect();
    jobs.sort_by(f64::total_cmp);
    jobs.dedup();
    let panels = jobs.into_iter().map(|job| {
        let own: Vec<&ReproducedRow> = rows
            .iter()
            .copied()
            .filter(|row| number_of(row, "job") == Some(job))
            .collect();
        let first = own.first();
        let cap = first.and_then(|row| number_of(row, "power_cap_w"));
        let network = first.map_or_else(String::new, |row| label(row, "network"));
        let lines = points(&own, "time_s", mode);
        Panel {
            title: format!("Job {job}: {network}, cap {} W", cap.unwrap_or_default()),
            x: "Time [s]".to_owned(),
            y: y.to_owned(),
            from_zero: true,
            curves: lines
                .into_iter()
                .map(|(name, points)| PaperCurve::new(name, points))
                .collect(),
            ..Panel::default()
        }
    });
    PaperFigure {
        number: number.to_owned(),
        title: title.to_owned(),
        caption: "The paper prints no numbers of this figure.".to_owned(),
        panels: panels.collect(),
    }
}
