//! Reproduces table 1, figure 7 and the text: every power cap of a server with 8 GPUs, ten runs each, measured at the
//! wall.

use sweetspot_decide::Objective;
use sweetspot_study::{AxisText, Definition, EnergyOf};

use super::figures::{NOT_DRAWN, figures};
use super::tables::{NodeFacts, read_node_facts};
use crate::row::{Conclusion, Judgement, Label, ReproducedRow, Rows, ValueKind};
use crate::simulated_runs::{CapCurve, SweepRunner};
use crate::{PapersError, Reproduction, ValueOrigin};

/// The name of the paper on the command line.
pub const PAPER: &str = "node-power-capping-2023";
/// The citation of the paper.
pub const SOURCE: &str = "G. Koszczał, J. Dobrosolski, M. Matuszek, P. Czarnul: Performance and Energy Aware Training of a Deep Neural Network in a Multi-GPU Environment with Power Capping. Euro-Par 2023 Workshops";
/// The name of the study, which selects the workload profiles.
const STUDY: &str = "node_power_capping_2023";

/// The gain of the best cap over the default cap, by one metric.
const GAIN: ValueKind = ValueKind::difference("gain", "gain [%]", 100.0, 2);
/// The best power cap by one metric.
const CAP: ValueKind = ValueKind::difference("power_cap_w", "best cap [W]", 1.0, 0);
/// The simulated gain at the cap that the paper found best.
const GAIN_AT_PUBLISHED_CAP: ValueKind =
    ValueKind::difference("gain_at_published_cap", "gain at their cap [%]", 100.0, 2);
/// The share of the node's energy that the best cap saves.
const SAVING: ValueKind = ValueKind::difference("energy_saving", "energy saved [%]", 100.0, 2);
/// The speed-up over one GPU.
const SPEEDUP: ValueKind = ValueKind::relative("speedup", "speed-up", 1.0, 2);
/// The time of the training.
const TIME: ValueKind = ValueKind::relative("time_s", "time [s]", 1.0, 1);

/// The note at the times that were read from the figure.
const READ_FROM_FIGURE: &str =
    "figure 7 prints this time beside its line, without saying for how many GPUs; only 2 fit";

/// The numbers of GPUs that the paper used.
const GPU_COUNTS: [u64; 4] = [1, 2, 4, 8];
/// The default power cap of a GPU in watts.
pub(super) const DEFAULT_CAP: f64 = 260.0;
/// The power cap of a GPU that the paper recommends, in watts.
pub(super) const RECOMMENDED_CAP: f64 = 170.0;

/// The largest gain in per cent that counts as little; batch_sizer_2021 judges a negligible gain by the same number.
const LITTLE: f64 = 5.0;

/// Sweeps the power caps with a job on `gpus` GPUs of the node.
fn sweep(runner: &mut SweepRunner, gpus: u64) -> Result<CapCurve, PapersError> {
    let study = runner.sweep(Definition {
        node: Some(STUDY.to_owned()),
        network: Some(format!("xception@{STUDY}")),
        gpus: Some(AxisText(gpus.to_string())),
        power_cap: Some(AxisText("100..260:10".to_owned())),
        energy_of: Some(EnergyOf::Node),
        repeat: Some(10),
        ..Definition::default()
    })?;
    Ok(CapCurve::new(&study))
}

/// Runs all sweeps of the paper and compares the results with its tables and text.
pub fn reproduce(runner: &mut SweepRunner) -> Result<Reproduction, PapersError> {
    let facts = read_node_facts()?;
    let mut curves = Vec::new();
    for gpus in GPU_COUNTS {
        curves.push((gpus, sweep(runner, gpus)?));
    }
    let mut rows = table_1(&facts, &curves[3].1);
    rows.extend(figure_7(&facts, &curves));
    rows.extend(savings_rows(&facts, &curves));
    Ok(Reproduction {
        paper: PAPER,
        source: SOURCE,
        runs: runner.clone(),
        conclusions: conclusions(&curves),
        rows,
        counted_tolerances: Vec::new(),
        not_reproduced: Vec::new(),
        jobs: Vec::new(),
        figures: figures(&facts, &curves),
        figures_not_drawn: NOT_DRAWN.into(),
        fit: None,
    })
}

/// The objective for a metric, by its name in table 1.
pub fn objective(metric: &str) -> Objective {
    match metric {
        "energy" => Objective::Energy,
        "edp" => Objective::Edp,
        "eds_k1.5" => Objective::Eds(1.5),
        "eds_k2.0" => Objective::Eds(2.0),
        _ => Objective::GainMinusLoss,
    }
}

/// The gain in an objective at a power cap over the default cap, as a fraction.
pub(super) fn gain_at(curve: &CapCurve, cap: f64, objective: Objective) -> Option<f64> {
    let own = curve.value(cap, objective)?;
    match objective {
        Objective::GainMinusLoss => Some(own),
        _ => Some(1.0 - own / curve.value(DEFAULT_CAP, objective)?),
    }
}

/// The rows of table 1: the gain and the cap of the best setting by each metric.
fn table_1(facts: &NodeFacts, eight: &CapCurve) -> Vec<ReproducedRow> {
    let mut rows = Rows::new("1");
    for (metric, gain, cap) in &facts.best {
        let objective = objective(metric);
        let labels: [(&'static str, Label); 2] =
            [("gpus", 8u64.into()), ("metric", metric.as_str().into())];
        let (gain, cap) = (Some(gain.get()), cap.get());
        let best = eight.best(objective).map(|(cap, _)| cap);
        // Both follow from time and energy at 170 W, like the difference of gain and loss.
        let is_derived = matches!(objective, Objective::Edp) || metric == "eds_k2.0";
        let (judgement, origin) = match is_derived {
            true => (Judgement::Shown, ValueOrigin::Derived),
            false => (Judgement::Each(0.007), ValueOrigin::Fitted),
        };
        rows.add(&labels, GAIN, gain, eight.gain(objective), judgement);
        rows.set_origin(origin);
        rows.add(&labels, CAP, Some(cap), best, Judgement::Each(10.0));
        rows.set_origin(ValueOrigin::Predicted);
        let there = gain_at(eight, cap, objective);
        rows.add(
            &labels,
            GAIN_AT_PUBLISHED_CAP,
            gain,
            there,
            Judgement::Shown,
        );
        // Gain and cap are printed above.
        rows.set_origin(ValueOrigin::Derived);
    }
    rows.rows
}

/// The time of the training in seconds, with this number of GPUs at this cap.
pub(super) fn training_time(curves: &[(u64, CapCurve)], gpus: u64, cap: f64) -> Option<f64> {
    let (_, curve) = curves.iter().find(|(count, _)| *count == gpus)?;
    Some(curve.outcome_at(cap)?.time.get())
}

/// The rows of figure 7: speed-ups and times.
fn figure_7(facts: &NodeFacts, curves: &[(u64, CapCurve)]) -> Vec<ReproducedRow> {
    let mut rows = Rows::new("figure 7");
    let [four, eight, eight_capped] = facts.speedups;
    let printed = [
        (4, DEFAULT_CAP, four, ValueOrigin::Fitted),
        (4, RECOMMENDED_CAP, four, ValueOrigin::Predicted),
        (8, DEFAULT_CAP, eight, ValueOrigin::Fitted),
        // It follows from two of the times below.
        (8, RECOMMENDED_CAP, eight_capped, ValueOrigin::Derived),
    ];
    for (gpus, cap, printed, origin) in printed {
        let labels: [(&'static str, Label); 2] =
            [("gpus", gpus.into()), ("power_cap_w", cap.into())];
        let here = training_time(curves, 1, cap).zip(training_time(curves, gpus, cap));
        let here = here.map(|(one, all)| one / all);
        let judgement = match origin {
            ValueOrigin::Derived => Judgement::Shown,
            _ => Judgement::Each(0.05),
        };
        rows.add(&labels, SPEEDUP, Some(printed), here, judgement);
        rows.set_origin(origin);
    }
    for (gpus, cap, printed) in &facts.times {
        let labels: [(&'static str, Label); 2] =
            [("gpus", (*gpus).into()), ("power_cap_w", cap.get().into())];
        let here = training_time(curves, *gpus, cap.get());
        let each = Judgement::Each(0.05);
        let note = rows.add(&labels, TIME, Some(printed.get()), here, each);
        if *gpus == 2 {
            *note = Some(READ_FROM_FIGURE.to_owned());
        }
        rows.set_origin(ValueOrigin::Fitted);
    }
    rows.rows
}

/// The rows of section 5: the energy that the best cap saves.
fn savings_rows(facts: &NodeFacts, curves: &[(u64, CapCurve)]) -> Vec<ReproducedRow> {
    let mut rows = Rows::new("section 5");
    for (gpus, printed) in &facts.savings {
        let labels = [("gpus", Label::from(*gpus))];
        let curve = curves.iter().find(|(count, _)| count == gpus);
        let here = curve.and_then(|(_, curve)| curve.gain(Objective::Energy));
        // With 8 GPUs it is the energy of table 1.
        let (judgement, origin) = match gpus {
            8 => (Judgement::Shown, ValueOrigin::Derived),
            _ => (Judgement::Each(0.01), ValueOrigin::Fitted),
        };
        rows.add(&labels, SAVING, Some(printed.get()), here, judgement);
        rows.set_origin(origin);
    }
    rows.rows
}

/// Whether each doubling of the GPUs makes a job faster than the one before, which begins with one GPU.
fn each_is_more(speedups: &[f64]) -> bool {
    let all: Vec<f64> = [1.0].into_iter().chain(speedups.iter().copied()).collect();
    all.is_sorted_by(|before, after| before < after)
}

/// The paper's conclusions, and whether the reproduction confirms them.
fn conclusions(curves: &[(u64, CapCurve)]) -> Vec<Conclusion> {
    let eight = &curves[3].1;
    let objectives = [
        Objective::Energy,
        Objective::GainMinusLoss,
        Objective::Edp,
        Objective::Eds(1.5),
        Objective::Eds(2.0),
    ];
    let caps: Vec<f64> = objectives
        .iter()
        .filter_map(|objective| Some(eight.best(*objective)?.0))
        .collect();
    let savings: Vec<f64> = curves
        .iter()
        .filter_map(|(_, curve)| curve.gain(Objective::Energy))
        .collect();
    let text = |values: &[f64], digits: usize| {
        let values = values.iter().map(|value| format!("{value:.digits$}"));
        values.collect::<Vec<_>>().join(", ")
    };
    let percent: Vec<f64> = savings.iter().map(|saving| 100.0 * saving).collect();
    let edp: Vec<f64> = curves[..3]
        .iter()
        .filter_map(|(_, curve)| Some(100.0 * curve.gain(Objective::Edp)?))
        .collect();
    let of_eight = eight.gain(Objective::Edp).map_or(0.0, |gain| 100.0 * gain);
    let scaling: Vec<f64> = [2, 4, 8]
        .into_iter()
        .filter_map(|gpus| {
            Some(training_time(curves, 1, DEFAULT_CAP)? / training_time(curves, gpus, DEFAULT_CAP)?)
        })
        .collect();
    vec![
        Conclusion::new(
            "with 8 GPUs every metric is best at a cap of 160 to 200 W (within 10 W here), not at the default of 260 W",
            caps.len() == 5 && caps.iter().all(|cap| (150.0..=210.0).contains(cap)),
            format!("{} W", text(&caps, 0)),
        ),
        Conclusion::new(
            "the more GPUs are used, the larger a share of the node's energy a cap saves",
            savings.len() == 4 && savings.is_sorted_by(|less, more| less < more),
            format!("{} % with 1, 2, 4, 8", text(&percent, 1)),
        ),
        Conclusion::new(
            "with 1, 2 or 4 GPUs a cap gains little in EDP (at most 5 %)",
            edp.len() == 3 && edp.iter().all(|gain| *gain <= LITTLE),
            format!("{} % against {of_eight:.1} % with 8", text(&edp, 1)),
        ),
        Conclusion::new(
            "training becomes faster with every doubling of GPUs",
            scaling.len() == 3 && each_is_more(&scaling),
            format!("{} times as fast with 2, 4, 8", text(&scaling, 2)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_scales_if_each_doubling_is_faster_than_the_one_before() {
        assert!(each_is_more(&[1.84, 3.17, 4.94]));
        assert!(!each_is_more(&[0.5, 0.7, 0.8]), "slower than one GPU");
        assert!(!each_is_more(&[1.8, 1.8, 2.0]), "no gain");
        assert!(!each_is_more(&[1.8, 3.2, 3.1]));
    }
}
