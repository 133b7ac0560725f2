//! Reproduces the ranges of sections 5.3 and 5.4: caps better than the default, best caps, and their costs and savings.

use sweetspot_decide::{Evidence, Objective};

use super::reproduction::{Curve, objective};
use super::tables::{CapRow, TextRange};
use crate::ValueOrigin;
use crate::row::{Judgement, Label, ReproducedRow, Rows, ValueKind, range_of};
use crate::simulated_runs::joules;

/// The tolerance of both ends of a range of power caps, in watts.
const RANGE_TOLERANCE: f64 = 25.0;

/// A power cap.
const WATTS: ValueKind = ValueKind::difference("power_cap_w", "[W]", 1.0, 0);
/// A share of energy or time.
const SHARE: ValueKind = ValueKind::difference("share", "[%]", 100.0, 1);

/// The rows for both ends of every range that the text states.
pub fn rows(text: &[TextRange], printed: &[CapRow], curves: &[Curve]) -> Vec<ReproducedRow> {
    let mut all = Vec::new();
    for range in text {
        let Ok(objective) = range.objective.parse::<Objective>() else {
            continue;
        };
        let own: Vec<&Curve> = curves
            .iter()
            .filter(|curve| curve.gpu == range.gpu)
            .collect();
        let (what, kind, judgement, scale) = match range.what.as_str() {
            "better_w" => (
                "caps better than the default",
                WATTS,
                Judgement::Each(RANGE_TOLERANCE),
                1.0,
            ),
            "best_w" => ("best caps", WATTS, Judgement::Shown, 1.0),
            "energy_saved_pct" => (
                "energy saved at the best caps",
                SHARE,
                Judgement::Shown,
                0.01,
            ),
            _ => ("time lost there", SHARE, Judgement::Shown, 0.01),
        };
        let here = match range.what.as_str() {
            "better_w" => better_caps(&own, objective),
            _ => Some(range_of(own.iter().filter_map(|curve| {
                value_at_best_cap(curve, objective, &range.what)
            }))),
        };
        let note = check_range(range, printed, objective);
        // Only the ranges better than the default are not in tables 2 and 3.
        let origin = match range.what.as_str() {
            "better_w" => ValueOrigin::Predicted,
            _ => ValueOrigin::Derived,
        };
        let mut rows = Rows::new(&format!("section {}", range.section)).with_origin(origin);
        let printed = [("from", range.low), ("to", range.high)];
        let here = [here.map(|here| here.0), here.map(|here| here.1)];
        for ((end, printed), here) in printed.into_iter().zip(here) {
            let labels: [(&'static str, Label); 4] = [
                ("gpu", range.gpu.as_str().into()),
                ("objective", range.objective.as_str().into()),
                ("what", what.into()),
                ("end", end.into()),
            ];
            *rows.add(&labels, kind, Some(scale * printed), here, judgement) = note.clone();
        }
        all.extend(rows.rows);
    }
    all
}

/// The range of caps at which a typical network is better than at the default: the medians of both ends over the six
/// networks.
fn better_caps(curves: &[&Curve], objective: Objective) -> Option<(f64, f64)> {
    let mut lows = Vec::new();
    let mut highs = Vec::new();
    for curve in curves {
        let caps = &curve.caps;
        let ranges = caps
            .comparison
            .better_than_reference(&caps.axis, objective, Evidence::Means);
        // Noise may separate a few caps next to the default from the others; a network without any such caps is
        // covered by the "mostly" of the text.
        let ranges = ranges.ok()?.into_iter();
        if let Some(widest) = ranges.max_by_key(|range| range.candidates.len()) {
            lows.push(widest.low);
            highs.push(widest.high);
        }
    }
    Some((median(lows)?, median(highs)?))
}

/// The median of some values; `None` if there are none.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 0 => Some(0.5 * (values[half - 1] + values[half])),
        _ => Some(values[half]),
    }
}

/// The best cap of a network for an objective, or the energy saved or time lost there; `what` is [`TextRange::what`].
fn value_at_best_cap(curve: &Curve, objective: Objective, what: &str) -> Option<f64> {
    let (cap, _) = curve.caps.best(objective)?;
    let (here, default) = (curve.caps.outcome_at(cap)?, curve.caps.reference()?);
    match what {
        "best_w" => Some(cap),
        "energy_saved_pct" => Some(1.0 - joules(here)? / joules(default)?),
        _ => Some((here.time / default.time).get() - 1.0),
    }
}

/// Returns a note if a range of the text contradicts the printed table.
fn check_range(range: &TextRange, printed: &[CapRow], of: Objective) -> Option<String> {
    let table = if range.section == "5.3" { "2" } else { "3" };
    let rows = printed
        .iter()
        .filter(|row| row.gpu == range.gpu && objective(&row.selection) == Some(of));
    let values = rows.filter_map(|row| match range.what.as_str() {
        "best_w" => Some(row.power_cap.get()),
        "energy_saved_pct" => row.energy_vs_default_pct.map(|percent| -percent),
        "time_lost_pct" => row.time_vs_default_pct,
        _ => None,
    });
    let values: Vec<f64> = values.collect();
    if values.is_empty() {
        return None;
    }
    let (low, high) = range_of(values);
    // The text rounds percentages to whole numbers.
    let is_off =
        |text: f64, table: f64| (text - table).abs() > if text.fract() == 0.0 { 1.0 } else { 0.05 };
    let is_off = match range.what.as_str() {
        "best_w" => low != range.low || high != range.high,
        _ => is_off(range.low, low) || is_off(range.high, high),
    };
    let unit = if range.what == "best_w" { "W" } else { "%" };
    is_off.then(|| {
        let from_quadro = range.section == "5.4" && matches!(of, Objective::Eds(_));
        let why = match from_quadro {
            true => ": the text repeats the Quadro's numbers here",
            false => "",
        };
        format!("error in the paper's text: table {table} gives {low}-{high} {unit}{why}")
    })
}
