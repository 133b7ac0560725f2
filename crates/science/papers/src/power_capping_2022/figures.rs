//! The figures of power_capping_2022: the plane of energy and time, and the metrics by power cap.

use sweetspot_decide::{Objective, Outcome};

use super::reproduction::{Curve, GPUS, objective};
use super::tables::CapRow;
use crate::figure::{Panel, PaperCurve, PaperFigure, gpu_name, metric_guides};
use crate::simulated_runs::joules;

/// The metrics of figures 2 and 3, with their names.
const METRICS: [(&str, Objective); 6] = [
    ("power", Objective::Power),
    ("energy", Objective::Energy),
    ("time", Objective::Time),
    ("EDP", Objective::Edp),
    ("EDS(k=1.5)", Objective::Eds(1.5)),
    ("EDS(k=2.0)", Objective::Eds(2.0)),
];

/// The network of figure 1.
const FIGURE_1_NETWORK: &str = "resnet50";

/// Time and energy relative to those at the default cap.
#[derive(Clone, Copy)]
struct Relative {
    time: f64,
    energy: f64,
}

impl Relative {
    fn of_outcomes(here: &Outcome, default: &Outcome) -> Option<Self> {
        Some(Self {
            time: (here.time / default.time).get(),
            energy: joules(here)? / joules(default)?,
        })
    }

    fn of_rows(here: &CapRow, default: &CapRow) -> Self {
        Self {
            time: (here.time / default.time).get(),
            energy: (here.energy / default.energy).get(),
        }
    }

    /// The value of a metric that is 1 at the default cap.
    fn metric(self, objective: Objective) -> f64 {
        let Self { time, energy } = self;
        match objective {
            Objective::Power => energy / time,
            Objective::Energy => energy,
            Objective::Time => time,
            Objective::Eds(k) => ((k - 1.0) * energy + time) / k,
            _ => energy * time,
        }
    }
}

/// The reproduced points of a curve: the cap in watts, and time and energy.
fn reproduced(curve: &Curve) -> Vec<(f64, Relative)> {
    let default = curve.caps.reference();
    let caps = curve.caps.axis.iter();
    caps.filter_map(|(cap, _)| {
        let here = curve.caps.outcome_at(*cap)?;
        Some((*cap, Relative::of_outcomes(here, default?)?))
    })
    .collect()
}

/// The printed points of a curve. Their percentages are those of the printed energies and times.
fn published(curve: &Curve, printed: &[CapRow]) -> Vec<(f64, Relative)> {
    let rows: Vec<&CapRow> = printed
        .iter()
        .filter(|row| row.gpu == curve.gpu && row.network == curve.network)
        .collect();
    let default = rows.iter().find(|row| objective(&row.selection).is_none());
    rows.iter()
        .filter_map(|row| Some((row.power_cap.get(), Relative::of_rows(row, default?))))
        .collect()
}

/// Figures 1 to 3.
pub(super) fn figures(curves: &[Curve], printed: &[CapRow]) -> Vec<PaperFigure> {
    let plane = curves
        .iter()
        .filter(|curve| curve.network == FIGURE_1_NETWORK)
        .map(|curve| {
            let points = reproduced(curve);
            let plane = |(_, here): &(f64, Relative)| (here.time, here.energy);
            let last = points.iter().map(|(_, here)| here.time).fold(1.0, f64::max);
            let mut all = metric_guides(1.0, last);
            all.push(
                PaperCurve::new(FIGURE_1_NETWORK, points.iter().rev().map(plane))
                    .with_published(published(curve, printed).iter().map(plane)),
            );
            Panel {
                title: gpu_name(curve.gpu).to_owned(),
                x: "Time [default cap = 1]".to_owned(),
                y: "Energy [default cap = 1]".to_owned(),
                curves: all,
                ..Panel::default()
            }
        });
    let mut figures = vec![PaperFigure {
        number: "1".to_owned(),
        title: "Energy against time of ResNet-50 under power caps".to_owned(),
        caption: "Published points: the rows of tables 2 and 3.".to_owned(),
        panels: plane.collect(),
    }];
    for ((gpu, table), number) in GPUS.iter().zip(["2", "3"]) {
        let panels = curves
            .iter()
            .filter(|curve| curve.gpu == *gpu)
            .map(|curve| {
                let (here, there) = (reproduced(curve), published(curve, printed));
                let line = |(name, objective): &(&str, Objective)| {
                    let at = |(cap, point): &(f64, Relative)| (*cap, point.metric(*objective));
                    PaperCurve::new(*name, here.iter().map(at))
                        .of(*objective)
                        .with_published(there.iter().map(at))
                };
                Panel {
                    title: curve.network.to_owned(),
                    x: "Power cap [W]".to_owned(),
                    y: "default cap = 1".to_owned(),
                    curves: METRICS.iter().map(line).collect(),
                    ..Panel::default()
                }
            });
        figures.push(PaperFigure {
            number: number.to_owned(),
            title: format!("Six networks under every power cap of {}", gpu_name(gpu)),
            caption: format!(
                "Published points: the rows of table {table}, relative to its default row."
            ),
            panels: panels.collect(),
        });
    }
    figures
}
