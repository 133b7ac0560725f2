//! The figures of the papers, as values: reproduced curves beside the points that a paper prints.
//!
//! A paper's figure is drawn again from the reproduction. Of the paper's own points only those are in it that the paper
//! prints as numbers, in a table, in the text or beside the figure; nothing is read off a drawing.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use sweetspot_decide::Objective;

use crate::row::{Label, ReproducedRow};

/// A figure of a paper.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PaperFigure {
    /// The number that the figure has in the paper, such as `2` or `4-7`.
    pub number: String,
    /// What the figure shows.
    pub title: String,
    /// What the published points are and where the paper prints them.
    pub caption: String,
    /// The panels of the figure.
    pub panels: Vec<Panel>,
}

/// A pair of axes of a paper's figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// What the panel shows, such as a network.
    pub title: String,
    /// The horizontal axis with its unit.
    pub x: String,
    /// The vertical axis with its unit.
    pub y: String,
    /// Whether the horizontal values double from one to the next, as batch sizes do.
    pub is_doubling: bool,
    /// Whether neighbouring values have nothing to do with each other, so that no line connects them.
    pub is_unordered: bool,
    /// Whether the vertical axis begins at zero.
    pub from_zero: bool,
    /// The curves.
    pub curves: Vec<PaperCurve>,
}

/// A curve of a paper's figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PaperCurve {
    /// The name in the legend.
    pub name: String,
    /// The metric, which determines the colour; `None` if the curve is one of several settings.
    pub objective: Option<Objective>,
    /// The reproduced values, from left to right.
    pub reproduced: Vec<(f64, f64)>,
    /// The values that the paper prints.
    pub published: Vec<(f64, f64)>,
    /// A value that the paper prints without saying where on the horizontal axis it is.
    pub published_level: Option<f64>,
    /// Whether this is a line to compare with, not a result.
    pub is_guide: bool,
}

/// A figure of a paper that is not drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FigureNotDrawn {
    /// The number that the figure has in the paper.
    pub number: &'static str,
    /// Why it is not drawn.
    pub reason: &'static str,
}

impl PaperCurve {
    /// A curve of reproduced values.
    pub(crate) fn new(
        name: impl Into<String>,
        reproduced: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
        Self {
            name: name.into(),
            reproduced: reproduced.into_iter().filter(finite).collect(),
            ..Self::default()
        }
    }

    /// The same curve in the colour of a metric.
    pub(crate) fn of(self, objective: Objective) -> Self {
        Self {
            objective: Some(objective),
            ..self
        }
    }

    /// The same curve with the points that the paper prints.
    pub(crate) fn with_published(self, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut published: Vec<(f64, f64)> = points.into_iter().collect();
        published.sort_by(|a, b| a.0.total_cmp(&b.0));
        published.dedup();
        Self { published, ..self }
    }
}

/// The lines on which a metric of energy and time equals that of the reference, from the shortest to the longest time.
pub(crate) fn metric_guides(first: f64, last: f64) -> Vec<PaperCurve> {
    const STEPS: u32 = 30;
    let times =
        || (0..=STEPS).map(move |step| first + (last - first) * f64::from(step) / f64::from(STEPS));
    // EDS(k) = 1 where (k-1) E + t = k.
    let sum = |k: f64| move |time: f64| (k - time) / (k - 1.0);
    let guide = |name: &str, objective: Objective, energy: &dyn Fn(f64) -> f64| PaperCurve {
        is_guide: true,
        ..PaperCurve::new(name, times().map(|time| (time, energy(time)))).of(objective)
    };
    vec![
        guide("E = 1", Objective::Energy, &|_| 1.0),
        guide("EDP = 1", Objective::Edp, &|time| 1.0 / time),
        guide("EDS(k=2.0) = 1", Objective::Eds(2.0), &sum(2.0)),
        guide("EDS(k=1.5) = 1", Objective::Eds(1.5), &sum(1.5)),
    ]
}

/// The name of a GPU as people write it, such as `TITAN X (Pascal)` for `titan_x_pascal`; that of its profile if it has none.
pub(crate) fn gpu_name(profile: &str) -> &str {
    static NAMES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
        let gpus = sweetspot_sim::gpus().into_iter().flatten();
        gpus.map(|(profile, gpu)| (profile, gpu.name)).collect()
    });
    NAMES.get(profile).map_or(profile, String::as_str)
}

/// The value of a number label of a row.
pub(crate) fn number_of(row: &ReproducedRow, name: &str) -> Option<f64> {
    row.row.iter().find_map(|(known, label)| match label {
        Label::Number(number) if *known == name => Some(*number),
        _ => None,
    })
}

/// Whether a row has a label with this text.
pub(crate) fn has_label(row: &ReproducedRow, name: &str, text: &str) -> bool {
    let mut labels = row.row.iter();
    labels.any(|(known, label)| *known == name && *label == Label::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_have_the_names_that_people_write() {
        assert_eq!(gpu_name("titan_x_pascal"), "TITAN X (Pascal)");
        assert_eq!(gpu_name("tesla_v100_sxm2_16gb"), "Tesla V100-SXM2-16GB");
        assert_eq!(gpu_name("my_gpu"), "my_gpu");
    }
}
