//! The ranges of sections 5.3 and 5.4: caps better than the default, best caps, and what they cost and save.

use sweetspot_decide::{Evidence, Objective};

use super::reproduction::{Curve, objective};
use super::tables::{CapRow, TextRange};
use crate::row::{Judgement, Kind, Label, ReproducedRow, Rows, ends};
use crate::simulated_runs::joules;

const NEAR_END: f64 = 25.0;

const WATTS: Kind = Kind::difference("power_cap_w", "[W]", 1.0, 0);
const SHARE: Kind = Kind::difference("share", "[%]", 100.0, 1);

/// Both ends of every range of the text.
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
                Judgement::Each(NEAR_END),
                1.0,
            ),
            "best_w" => ("best caps", WATTS, Judgement::Shown, 1.0),
            "energy_saved_pct" => ("energy saved there", SHARE, Judgement::Shown, 0.01),
            _ => ("time lost there", SHARE, Judgement::Shown, 0.01),
        };
        let here = match range.what.as_str() {
            "better_w" => better(&own, objective),
            _ => Some(ends(
                own.iter()
                    .filter_map(|curve| at_best(curve, objective, &range.what)),
            )),
        };
        let note = fault(range, printed, objective);
        let mut rows = Rows::new(&format!("section {}", range.section));
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

/// The caps at which a network typically is better than at the default: the middle of the six networks,
/// end by end.
fn better(curves: &[&Curve], objective: Objective) -> Option<(f64, f64)> {
    let mut lows = Vec::new();
    let mut highs = Vec::new();
    for curve in curves {
        let caps = &curve.caps;
        let ranges = caps
            .comparison
            .better_than_reference(&caps.axis, objective, Evidence::Means);
        // Noise may cut a few caps next to the default off the others; a network without any is one of
        // those that the text's "mostly" leaves out.
        let ranges = ranges.ok()?.into_iter();
        if let Some(widest) = ranges.max_by_key(|range| range.candidates.len()) {
            lows.push(widest.low);
            highs.push(widest.high);
        }
    }
    Some((middle(lows)?, middle(highs)?))
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 0 => Some(0.5 * (values[half - 1] + values[half])),
        _ => Some(values[half]),
    }
}

/// The best cap of a network, or what it saves or costs.
fn at_best(curve: &Curve, objective: Objective, what: &str) -> Option<f64> {
    let (cap, _) = curve.caps.best(objective)?;
    let (here, default) = (curve.caps.at(cap)?, curve.caps.reference()?);
    match what {
        "best_w" => Some(cap),
        "energy_saved_pct" => Some(1.0 - joules(here)? / joules(default)?),
        _ => Some((here.time / default.time).get() - 1.0),
    }
}

/// Where the text's range is not that of the table it speaks of.
fn fault(range: &TextRange, printed: &[CapRow], of: Objective) -> Option<String> {
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
    let (low, high) = ends(values);
    // The text rounds per cent to whole ones.
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
            true => ": the text carries the Quadro's numbers here",
            false => "",
        };
        format!("fault of the text: table {table} itself gives {low}-{high} {unit}{why}")
    })
}
