//! Reproduces tables 2 and 3: every power cap of two GPUs, six networks, five runs each.

use sweetspot_decide::Objective;
use sweetspot_study::{AxisText, Definition};

use super::tables::{CapRow, read_cap_rows, read_text_ranges};
use super::{table_checks, text_claims};
use crate::PapersError;
use crate::Reproduction;
use crate::ValueOrigin;
use crate::row::{
    Conclusion, CountedTolerance, Judgement, Label, Rows, ValueKind, is_range_near, range_of,
};
use crate::simulated_runs::{CapCurve, SweepRunner, joules};

/// The name of the paper on the command line.
pub const PAPER: &str = "power-capping-2022";
/// The citation of the paper.
pub const SOURCE: &str = "A. Krzywaniak, P. Czarnul, J. Proficz: GPU power capping for energy-performance trade-offs in training of Deep Convolutional Neural Networks for image recognition. ICCS 2022";

/// The profile of each GPU of the paper, and the number of its table.
pub const GPUS: [(&str, &str); 2] = [("quadro_rtx_6000", "2"), ("tesla_v100_sxm2_16gb", "3")];

/// The mean power of a run.
const POWER: ValueKind = ValueKind::relative("average_power_w", "average power [W]", 1.0, 1);
/// The energy of a run.
const ENERGY: ValueKind = ValueKind::relative("energy_j", "energy [kJ]", 1e-3, 3);
/// The time of a run.
const TIME: ValueKind = ValueKind::relative("time_s", "time [s]", 1.0, 1);
/// The change of the energy against the default cap.
const ENERGY_CHANGE: ValueKind = ValueKind::difference("energy_vs_default", "energy [%]", 100.0, 1);
/// The change of the time against the default cap.
const TIME_CHANGE: ValueKind = ValueKind::difference("time_vs_default", "time [%]", 100.0, 1);
/// The best power cap for an objective.
const CAP: ValueKind = ValueKind::difference("power_cap_w", "best cap [W]", 1.0, 0);
/// How much worse the objective is at the published best cap than at the simulated best cap.
const REGRET: ValueKind = ValueKind::difference("regret", "regret there [%]", 100.0, 2);

/// The relative tolerance of rows with times and energies.
const RELATIVE_TOLERANCE: f64 = 0.03;
/// The tolerance of the regret at the published best cap, as a fraction.
const REGRET_TOLERANCE: f64 = 0.015;
/// The tolerance of best caps in watts.
const CAP_TOLERANCE: f64 = 10.0;
/// The tolerance of the ends of a stated range of savings, as a fraction.
const SHARE_TOLERANCE: f64 = 0.01;
/// The network whose energy on the V100 is not least at the lowest cap.
const EXCEPTION: &str = "inception_v3";
/// The smallest number of regrets that must be within their tolerance.
const MIN_SMALL_REGRETS: usize = 46;
/// The smallest number of best caps that must be within their tolerance.
const MIN_NEAR_CAPS: usize = 36;

/// The sweep of one network on one GPU.
pub struct Curve {
    pub gpu: &'static str,
    pub network: &'static str,
    pub caps: CapCurve,
}

/// The objective for which a row of the tables shows the best cap; `None` for the row of the default cap.
pub fn objective(selection: &str) -> Option<Objective> {
    match selection {
        "min E" => Some(Objective::Energy),
        "min EDP" => Some(Objective::Edp),
        "min EDS(k=2.0)" => Some(Objective::Eds(2.0)),
        "min EDS(k=1.5)" => Some(Objective::Eds(1.5)),
        _ => None,
    }
}

/// Sweeps every network on every GPU.
fn curves(runner: &mut SweepRunner, printed: &[CapRow]) -> Result<Vec<Curve>, PapersError> {
    let mut curves: Vec<Curve> = Vec::new();
    for (gpu, _) in GPUS {
        for row in printed.iter().filter(|row| row.gpu == gpu) {
            if curves
                .iter()
                .any(|known| known.gpu == gpu && known.network == row.network)
            {
                continue;
            }
            let definition = Definition {
                power_cap: Some(AxisText("all".to_owned())),
                repeat: Some(5),
                ..Definition::simulated(gpu, &format!("{}@power_capping_2022", row.network))
            };
            curves.push(Curve {
                gpu,
                network: row.network,
                caps: CapCurve::new(&runner.sweep(definition)?),
            });
        }
    }
    Ok(curves)
}

/// Runs all sweeps of the paper and compares the results with its tables and text.
pub fn reproduce(runner: &mut SweepRunner) -> Result<Reproduction, PapersError> {
    let printed = read_cap_rows()?;
    let curves = curves(runner, &printed)?;
    let mut rows = Vec::new();
    for (gpu, table) in GPUS {
        // Average power and percentages follow from energies and times.
        let mut own = Rows::new(table).with_origin(ValueOrigin::Derived);
        let mut best =
            Rows::new(&format!("{table}, the best caps")).with_origin(ValueOrigin::Derived);
        for curve in curves.iter().filter(|curve| curve.gpu == gpu) {
            let of_network: Vec<&CapRow> = printed
                .iter()
                .filter(|row| row.gpu == gpu && row.network == curve.network)
                .collect();
            let Some(default) = of_network.iter().find(|row| row.selection == "default") else {
                continue;
            };
            for (index, row) in of_network.iter().enumerate() {
                // A row that is printed for several metrics is one pair of independent values.
                let before = of_network[..index].iter();
                let is_repeated = before
                    .into_iter()
                    .any(|other| other.power_cap == row.power_cap);
                let origin = match is_repeated {
                    true => ValueOrigin::Derived,
                    false => ValueOrigin::Fitted,
                };
                add_cap(&mut own, row, default, curve, origin);
                add_best_cap(&mut best, row, default, &of_network, curve);
            }
        }
        rows.extend(own.rows);
        rows.extend(best.rows);
    }
    let count = |kind: ValueKind, what: &str, needed| {
        let judged = rows.iter().filter(|row| row.kind == kind);
        let judged: Vec<bool> = judged.filter_map(|row| row.is_within_tolerance()).collect();
        CountedTolerance {
            what: what.to_owned(),
            met: judged.iter().filter(|met| **met).count(),
            of: judged.len(),
            needed,
        }
    };
    let counted_tolerances = vec![
        count(
            REGRET,
            "at the published best cap, the objective is within 1.5 % of its simulated best value",
            MIN_SMALL_REGRETS,
        ),
        count(
            CAP,
            "the simulated best cap is within 10 W of the published one",
            MIN_NEAR_CAPS,
        ),
    ];
    let text = read_text_ranges()?;
    rows.extend(text_claims::rows(&text, &printed, &curves));
    Ok(Reproduction {
        fit: None,
        paper: PAPER,
        source: SOURCE,
        runs: runner.clone(),
        rows,
        counted_tolerances,
        conclusions: conclusions(&curves),
        not_reproduced: Vec::new(),
        jobs: Vec::new(),
        figures: super::figures::figures(&curves, &printed),
        figures_not_drawn: Vec::new(),
    })
}

/// The labels that identify a row.
fn labels(row: &CapRow) -> Vec<(&'static str, Label)> {
    vec![
        ("gpu", row.gpu.as_str().into()),
        ("network", row.network.into()),
        ("selection", row.selection.as_str().into()),
        ("power_cap_w", row.power_cap.get().into()),
    ]
}

/// Adds the rows for power, energy and time at a published cap.
fn add_cap(rows: &mut Rows, row: &CapRow, default: &CapRow, curve: &Curve, origin: ValueOrigin) {
    let here = curve.caps.outcome_at(row.power_cap.get());
    let reference = curve.caps.reference();
    let energy = here.and_then(joules);
    let time = here.map(|here| here.time.get());
    let power = energy.zip(time).map(|(energy, time)| energy / time);
    let labels = labels(row);
    let printed_power = Some(row.average_power.get());
    rows.add(&labels, POWER, printed_power, power, Judgement::Shown);
    let near = Judgement::Each(RELATIVE_TOLERANCE);
    *rows.add(&labels, ENERGY, Some(row.energy.get()), energy, near) =
        table_checks::check_energy(row);
    rows.set_origin(origin);
    let change = |here: Option<f64>, default: Option<f64>| Some(here? / default? - 1.0);
    let fraction = |percent: f64| percent / 100.0;
    if let Some(printed) = row.energy_vs_default_pct.map(fraction) {
        let here = change(energy, reference.and_then(joules));
        *rows.add(
            &labels,
            ENERGY_CHANGE,
            Some(printed),
            here,
            Judgement::Shown,
        ) = table_checks::check_energy_percent(row, default);
    }
    rows.add(&labels, TIME, Some(row.time.get()), time, near);
    rows.set_origin(origin);
    if let Some(printed) = row.time_vs_default_pct.map(fraction) {
        let here = change(time, reference.map(|reference| reference.time.get()));
        *rows.add(&labels, TIME_CHANGE, Some(printed), here, Judgement::Shown) =
            table_checks::check_time_percent(row, default);
    }
}

/// Adds the rows for the best cap: the published one beside the simulated one.
fn add_best_cap(rows: &mut Rows, row: &CapRow, default: &CapRow, all: &[&CapRow], curve: &Curve) {
    let Some(objective) = objective(&row.selection) else {
        return;
    };
    let cap = row.power_cap.get();
    let best = curve.caps.best(objective);
    let there = curve.caps.value(cap, objective);
    let regret = best.zip(there).map(|((_, best), there)| there / best - 1.0);
    let labels = labels(row);
    let here = best.map(|(cap, _)| cap);
    let near = Judgement::Counted(CAP_TOLERANCE);
    *rows.add(&labels, CAP, Some(cap), here, near) =
        table_checks::check_best_cap(row, default, all, objective);
    rows.set_origin(ValueOrigin::Fitted);
    let small = Judgement::Counted(REGRET_TOLERANCE);
    let is_odd = row.gpu == GPUS[1].0 && row.network == "inception_v3" && row.selection == "min E";
    *rows.add(&labels, REGRET, Some(0.0), regret, small) = is_odd.then(|| {
        "odd in the table: all other networks save most at 150 W, and so does a smooth curve through this network's rows"
            .to_owned()
    });
}

/// The paper's conclusions, and whether the reproduction confirms them.
fn conclusions(curves: &[Curve]) -> Vec<Conclusion> {
    let gains = |gpu: &str, objective: Objective| -> Vec<(f64, f64)> {
        let of_gpu = curves.iter().filter(|curve| curve.gpu == gpu);
        of_gpu
            .filter_map(|curve| {
                let (cap, _) = curve.caps.best(objective)?;
                let (here, default) = (curve.caps.outcome_at(cap)?, curve.caps.reference()?);
                let saved = 1.0 - joules(here)? / joules(default)?;
                Some((saved, (here.time / default.time).get() - 1.0))
            })
            .collect()
    };
    let per_cent = |low: f64, high: f64| format!("{:.1}-{:.1} %", 100.0 * low, 100.0 * high);
    let mut all = Vec::new();
    let mut savings = Vec::new();
    for (gpu, _) in GPUS {
        let (low, high) = range_of(gains(gpu, Objective::Energy).into_iter().map(|gain| gain.0));
        savings.push((low, high, format!("{} on {gpu}", per_cent(low, high))));
    }
    let (least, most) = range_of(savings.iter().flat_map(|(low, high, _)| [*low, *high]));
    let texts: Vec<String> = savings.into_iter().map(|(_, _, text)| text).collect();
    all.push(Conclusion::new(
        "power capping saves from a quarter to a third of the energy (both ends within 1 point)",
        is_range_near((least, most), (1.0 / 4.0, 1.0 / 3.0), SHARE_TOLERANCE),
        texts.join(", "),
    ));
    for (objective, what) in [
        (
            Objective::Edp,
            "at the best EDP more energy is saved than time is lost, in per cent",
        ),
        (
            Objective::Eds(2.0),
            "at the best EDS(k=2.0) more energy is saved than time is lost, in per cent",
        ),
        (
            Objective::Eds(1.5),
            "at the best EDS(k=1.5) more energy is saved than time is lost, in per cent",
        ),
    ] {
        let both: Vec<(f64, f64)> = GPUS
            .iter()
            .flat_map(|gpu| gains(gpu.0, objective))
            .collect();
        let saved = range_of(both.iter().map(|gain| gain.0));
        let lost = range_of(both.iter().map(|gain| gain.1));
        all.push(Conclusion::new(
            what,
            both.iter().all(|(saved, lost)| saved > lost),
            format!(
                "{} saved, {} lost",
                per_cent(saved.0, saved.1),
                per_cent(lost.0, lost.1)
            ),
        ));
    }
    let at_lowest: Vec<&str> = curves
        .iter()
        .filter(|curve| curve.gpu == GPUS[1].0)
        .filter(|curve| {
            curve
                .caps
                .best(Objective::Energy)
                .is_some_and(|best| best.0 <= 150.0)
        })
        .map(|curve| curve.network)
        .collect();
    let of_v100 = curves.iter().filter(|curve| curve.gpu == GPUS[1].0);
    let expected: Vec<&str> = of_v100
        .map(|curve| curve.network)
        .filter(|network| *network != EXCEPTION)
        .collect();
    all.push(Conclusion::new(
        "on the V100 energy is least at the lowest cap, 150 W, except for Inception v3",
        at_lowest == expected,
        format!(
            "for {} of 6 networks: {}",
            at_lowest.len(),
            at_lowest.join(", ")
        ),
    ));
    all
}
