//! The figures of node_power_capping_2023: what caps gain, and the times by number of GPUs.

use sweetspot_decide::Objective;

use super::reproduction::{DEFAULT_CAP, RECOMMENDED_CAP, gain_at, objective, training_time};
use super::tables::NodeFacts;
use crate::figure::{FigureNotDrawn, Panel, PaperCurve, PaperFigure};
use crate::simulated_runs::CapCurve;

/// The figures that are not drawn.
pub(super) const NOT_DRAWN: [FigureNotDrawn; 1] = [FigureNotDrawn {
    number: "1",
    reason: "it shows the parts of a program",
}];

/// The name of the horizontal axis of figures 2 to 6.
const CAP_AXIS: &str = "Power cap [W]";

/// Figures 2 to 7.
pub(super) fn figures(facts: &NodeFacts, curves: &[(u64, CapCurve)]) -> Vec<PaperFigure> {
    let Some((_, eight)) = curves.iter().find(|(gpus, _)| *gpus == 8) else {
        return Vec::new();
    };
    let percent = |share: f64| 100.0 * share;
    // Table 1 prints the gain of the best cap by each metric with 8 GPUs.
    let printed = |metric: &str| -> Vec<(f64, f64)> {
        let best = facts.best.iter().filter(|(name, _, _)| name == metric);
        best.map(|(_, gain, cap)| (cap.get(), gain.get())).collect()
    };
    let gains = |curve: &CapCurve, objective: Objective| -> Vec<(f64, f64)> {
        let caps = curve.axis.iter();
        caps.filter_map(|(cap, _)| Some((*cap, gain_at(curve, *cap, objective)?)))
            .collect()
    };
    let in_percent =
        |points: Vec<(f64, f64)>| points.into_iter().map(move |(x, y)| (x, percent(y)));
    let savings = curves.iter().map(|(gpus, curve)| {
        let name = match gpus {
            1 => "1 GPU".to_owned(),
            gpus => format!("{gpus} GPUs"),
        };
        let line = PaperCurve::new(name, in_percent(gains(curve, Objective::Energy)));
        let known = facts.savings.iter().find(|(count, _)| count == gpus);
        match gpus {
            8 => line.with_published(in_percent(printed("energy"))),
            _ => PaperCurve {
                published_level: known.map(|(_, saving)| percent(saving.get())),
                ..line
            },
        }
    });
    let relative = |metric: &str, name: &str| {
        let objective = objective(metric);
        let rest = |(cap, gain): (f64, f64)| (cap, 1.0 - gain);
        PaperCurve::new(name, gains(eight, objective).into_iter().map(rest))
            .of(objective)
            .with_published(printed(metric).into_iter().map(rest))
    };
    let slower = |cap: f64| {
        let time = training_time(curves, 8, cap)?;
        Some((
            cap,
            percent(time / training_time(curves, 8, DEFAULT_CAP)? - 1.0),
        ))
    };
    let printed_slower = facts
        .time(8, RECOMMENDED_CAP)
        .zip(facts.time(8, DEFAULT_CAP))
        .map(|(capped, default)| (RECOMMENDED_CAP, percent(capped / default - 1.0)));
    let slowdown = PaperCurve::new(
        "time increase",
        eight.axis.iter().filter_map(|(cap, _)| slower(*cap)),
    )
    .of(Objective::Time)
    .with_published(printed_slower);
    let difference = PaperCurve::new(
        "energy decrease - time increase",
        in_percent(gains(eight, Objective::GainMinusLoss)),
    )
    .of(Objective::GainMinusLoss)
    .with_published(in_percent(printed("energy_gain_minus_time_loss")));
    let times = [DEFAULT_CAP, RECOMMENDED_CAP].map(|cap| {
        let here = curves.iter().map(|(gpus, _)| (*gpus as f64, *gpus));
        let here = here.filter_map(|(x, gpus)| Some((x, training_time(curves, gpus, cap)?)));
        let known = facts.times.iter().filter(|(_, at, _)| at.get() == cap);
        PaperCurve::new(format!("{cap} W"), here)
            .with_published(known.map(|(gpus, _, time)| (*gpus as f64, time.get())))
    });
    let by_cap = |y: &str, curves: Vec<PaperCurve>| Panel {
        x: CAP_AXIS.to_owned(),
        y: y.to_owned(),
        curves,
        ..Panel::default()
    };
    let figure = |number: &str, title: &str, caption: &str, panel: Panel| PaperFigure {
        number: number.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        panels: vec![panel],
    };
    let table_1 = "Published points: the gain at the best cap in table 1.";
    vec![
        figure(
            "2",
            "Energy decrease of the node by power cap",
            "Published point: table 1, 8 GPUs. Dashed levels: the largest savings with 1, 2 and 4 GPUs in the text, which does not say at which caps.",
            by_cap("Energy decrease [%]", savings.collect()),
        ),
        figure(
            "3",
            "Time increase by power cap, 8 GPUs",
            "Published point: from the times beside figure 7.",
            by_cap("Time increase [%]", vec![slowdown]),
        ),
        figure(
            "4",
            "EDP by power cap, 8 GPUs",
            table_1,
            by_cap("EDP [260 W = 1]", vec![relative("edp", "EDP")]),
        ),
        figure(
            "5",
            "EDS by power cap, 8 GPUs",
            table_1,
            by_cap(
                "EDS [260 W = 1]",
                vec![
                    relative("eds_k1.5", "EDS(k=1.5)"),
                    relative("eds_k2.0", "EDS(k=2.0)"),
                ],
            ),
        ),
        figure(
            "6",
            "Energy decrease minus time increase by power cap, 8 GPUs",
            table_1,
            by_cap("Difference [percentage points]", vec![difference]),
        ),
        figure(
            "7",
            "Training time by number of GPUs",
            "Published points: the numbers beside the figure's lines.",
            Panel {
                x: "GPUs".to_owned(),
                y: "Training time [s]".to_owned(),
                is_doubling: true,
                from_zero: true,
                curves: times.into(),
                ..Panel::default()
            },
        ),
    ]
}
