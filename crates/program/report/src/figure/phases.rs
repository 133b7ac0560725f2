//! Time and energy of each phase, as stacked bars.

use std::collections::{BTreeMap, HashSet};

use sweetspot_study::Point;

use super::chart::{Bar, Chart, ChartAxis, Figure};
use crate::analysis::choices::choices;
use crate::analysis::view::StudyView;
use crate::wording::format_amount;

/// Draws the phases of the configurations in the results table.
pub fn phases(view: &StudyView<'_>) -> Option<Figure> {
    let mut points: Vec<(String, &Point)> = Vec::new();
    for row in choices(view.study, view.criteria) {
        let setting = crate::settings::setting(&view.varied, row.point);
        if !points.iter().any(|(known, _)| *known == setting) && !row.point.phases().is_empty() {
            points.push((setting, row.point));
        }
    }
    if points.is_empty() {
        return None;
    }
    let shown = phases_to_show(&points);
    let chart = |title: &str,
                 unit: &str,
                 scale: f64,
                 of: &dyn Fn(&sweetspot_study::PhaseResult) -> Option<f64>| {
        let bars = points.iter().map(|(label, point)| Bar {
            label: label.clone(),
            parts: point
                .phases()
                .iter()
                .filter(|phase| shown.contains(&phase.name))
                .filter_map(|phase| {
                    let value = of(phase)?;
                    let value = if value.is_finite() {
                        value.max(0.0)
                    } else {
                        0.0
                    };
                    let amount = format_amount(value, unit);
                    let text = format!("{label}\n{} {amount}", phase.name);
                    Some((phase.name.clone(), value * scale, text))
                })
                .collect(),
        });
        Chart {
            title: title.to_owned(),
            x: ChartAxis::from_zero(title.to_owned()),
            bars: bars.collect(),
            ..Chart::default()
        }
    };
    Some(Figure {
        id: "phases".to_owned(),
        title: "Phases".to_owned(),
        caption: match view.study.energy_of().to_string().as_str() {
            "job-gpus" => {
                "Mean time and energy of each phase, for the rows of the table.".to_owned()
            }
            other => format!(
                "Mean time and energy of each phase, for the rows of the table. Energy is that of the job's GPUs: the energy of {other} is known only for whole runs."
            ),
        },
        charts: [
            chart("Time [s]", "s", 1.0, &|phase| Some(phase.time.get())),
            chart("Energy [kJ]", "J", 1e-3, &|phase| Some(phase.energy?.get())),
        ]
        .into_iter()
        .filter(|chart| chart.bars.iter().any(|bar| !bar.parts.is_empty()))
        .collect(),
    })
}

/// The phases with the most time. A phase without time and energy would only add a name.
fn phases_to_show(points: &[(String, &Point)]) -> HashSet<String> {
    /// The maximum number of phases that a person can tell apart in a bar.
    const MAX_PHASES: usize = 40;
    let mut times: BTreeMap<String, f64> = BTreeMap::new();
    for phase in points.iter().flat_map(|(_, point)| point.phases()) {
        if phase.time.get() > 0.0 || phase.energy.is_some_and(|energy| energy.get() > 0.0) {
            *times.entry(phase.name).or_default() += phase.time.get();
        }
    }
    let mut longest: Vec<(String, f64)> = times.into_iter().collect();
    longest.sort_by(|a, b| b.1.total_cmp(&a.1));
    longest.truncate(MAX_PHASES);
    longest.into_iter().map(|(name, _)| name).collect()
}
