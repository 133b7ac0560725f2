//! Deviations from table 1, figure 7 and the text: energy of the node that a cap saves, and speed-ups.

use sweetspot_decide::{Objective, Outcome};
use sweetspot_quantity::Watts;
use sweetspot_study::EnergyOf;

use super::tables::{NodeFacts, read_node_facts};
use crate::PapersError;
use crate::Profiles;
use crate::deviations::{Column, SimulatorDeviations, Table, Value};

/// The name of the study, which selects the workload profiles.
const STUDY: &str = "node_power_capping_2023";
/// The profile of the paper's GPUs.
const GPU: &str = "quadro_rtx_6000";
/// The default power cap of a GPU in watts.
const DEFAULT_CAP: f64 = 260.0;
/// The power cap of a GPU that the paper recommends, in watts.
const RECOMMENDED_CAP: f64 = 170.0;

/// The time and energy of the node at each power cap in watts.
struct Curve(Vec<(f64, Outcome)>);

impl Curve {
    /// The time and energy of the node at a power cap, which must be one of the curve's.
    fn outcome_at(&self, cap: f64) -> Outcome {
        let found = self.0.iter().find(|(at, _)| *at == cap);
        found.unwrap_or(&self.0[0]).1.clone()
    }

    /// The best cap in watts for an objective, and the objective's value there. The default cap is the reference.
    fn best(&self, objective: Objective) -> (f64, f64) {
        let reference = self.outcome_at(DEFAULT_CAP);
        let value = |outcome: &Outcome| objective.value(outcome, &reference).unwrap_or(f64::NAN);
        let all = self.0.iter().map(|(cap, outcome)| (*cap, value(outcome)));
        all.reduce(|best, other| {
            if objective.is_better(other.1, best.1) {
                other
            } else {
                best
            }
        })
        .unwrap_or_default()
    }
}

/// The value of an objective that needs no reference run.
fn value_of(objective: Objective, outcome: &Outcome) -> f64 {
    objective.value(outcome, outcome).unwrap_or(f64::NAN)
}

/// Simulates the node at each cap, with a job on `gpus` of its GPUs.
fn curve(profiles: &Profiles, gpus: u64) -> Result<Curve, PapersError> {
    let name = format!("xception@{STUDY}");
    let caps = (100..=260)
        .step_by(10)
        .map(|cap| Watts::new(f64::from(cap)));
    let points = profiles.curve(&[GPU; 8], Some(STUDY), &name, EnergyOf::Node, gpus, caps)?;
    let in_watts = points
        .into_iter()
        .map(|(cap, outcome)| (cap.get(), outcome));
    Ok(Curve(in_watts.collect()))
}

/// Compares the simulated savings, speed-ups and best caps with the paper.
pub fn compare(profiles: &Profiles) -> Result<SimulatorDeviations, PapersError> {
    let facts = read_node_facts()?;
    let mut curves = Vec::new();
    for (gpus, _) in &facts.savings {
        curves.push(curve(profiles, *gpus)?);
    }
    let eight = &curves[3];
    let (metrics, caps) = best_caps(&facts, eight);
    let table = |title: &str, columns, rows| Table {
        title: title.to_owned(),
        columns,
        rows,
    };
    let tables = vec![
        table(
            "the text",
            vec![Column::difference("%", 2)],
            savings(&facts, &curves),
        ),
        table(
            "figure 7, speed-ups",
            vec![Column::relative("x", 2)],
            speedups(&facts, &curves),
        ),
        table(
            "figure 7, times",
            vec![Column::relative("s", 1)],
            times(eight),
        ),
        table("table 1", vec![Column::difference("%", 2)], metrics),
        table("table 1, the caps", vec![Column::difference("W", 0)], caps),
    ];
    Ok(SimulatorDeviations {
        study: STUDY.to_owned(),
        free_parameters: profiles.count_fitted(STUDY, &[], &[STUDY]),
        values: tables.iter().map(|table| table.rows.len()).sum(),
        tables,
    })
}

/// A row of a table: its label and its values.
type LabelledValues = (String, Vec<Value>);

/// A row with one value.
fn labelled_value(label: String, published: f64, here: f64, tolerance: f64) -> LabelledValues {
    let value = Value {
        published,
        here,
        tolerance: Some(tolerance),
        origin: None,
    };
    (label, vec![value])
}

/// The rows for the energy that the best caps save, and for the changes of time and energy at the recommended cap.
fn savings(facts: &NodeFacts, curves: &[Curve]) -> Vec<LabelledValues> {
    let mut savings = Vec::new();
    for ((gpus, published), curve) in facts.savings.iter().zip(curves) {
        let (_, least) = curve.best(Objective::Energy);
        let here = 1.0 - least / value_of(Objective::Energy, &curve.outcome_at(DEFAULT_CAP));
        let label = format!("{gpus} of 8 GPUs: node energy saved by the best cap");
        savings.push(labelled_value(
            label,
            100.0 * published.get(),
            100.0 * here,
            1.0,
        ));
    }
    let eight = &curves[3];
    let (chosen, default) = (
        eight.outcome_at(RECOMMENDED_CAP),
        eight.outcome_at(DEFAULT_CAP),
    );
    let change = |ratio: f64| 100.0 * (ratio - 1.0);
    let joules = |outcome| value_of(Objective::Energy, outcome);
    let time = change((chosen.time / default.time).get());
    let energy = change(joules(&chosen) / joules(&default));
    savings.push(labelled_value(
        "8 GPUs at 170 W: time".to_owned(),
        9.35,
        time,
        0.7,
    ));
    let label = "8 GPUs at 170 W: node energy".to_owned();
    savings.push(labelled_value(label, -24.38, energy, 0.7));
    savings
}

/// The rows for the speed-ups over one GPU.
fn speedups(facts: &NodeFacts, curves: &[Curve]) -> Vec<LabelledValues> {
    let speedup = |gpus: usize, cap: f64| {
        (curves[0].outcome_at(cap).time / curves[gpus].outcome_at(cap).time).get()
    };
    let speedups = [
        ("4 GPUs", speedup(2, DEFAULT_CAP)),
        ("8 GPUs at 260 W", speedup(3, DEFAULT_CAP)),
        ("8 GPUs at 170 W", speedup(3, RECOMMENDED_CAP)),
    ];
    let pairs = speedups.into_iter().zip(facts.speedups);
    pairs
        .map(|((what, here), published)| {
            labelled_value(
                format!("speed-up of {what} over one"),
                published,
                here,
                0.05,
            )
        })
        .collect()
}

/// The rows for the times with 8 GPUs in figure 7.
fn times(eight: &Curve) -> Vec<LabelledValues> {
    [
        ("260 W", 85.6, DEFAULT_CAP),
        ("170 W", 93.6, RECOMMENDED_CAP),
    ]
    .into_iter()
    .map(|(text, published, cap)| {
        let here = eight.outcome_at(cap).time.get();
        labelled_value(format!("8 GPUs at {text}"), published, here, 0.05)
    })
    .collect()
}

/// The rows for the gain of the best cap by each metric, and the rows for those caps.
fn best_caps(facts: &NodeFacts, eight: &Curve) -> (Vec<LabelledValues>, Vec<LabelledValues>) {
    let default = eight.outcome_at(DEFAULT_CAP);
    let mut metrics = Vec::new();
    let mut caps = Vec::new();
    for (metric, gain, cap) in &facts.best {
        let (objective, gain_of): (Objective, fn(f64, &Outcome) -> f64) = match metric.as_str() {
            "energy" => continue,
            "edp" => (Objective::Edp, |edp, reference| {
                1.0 - edp / value_of(Objective::Edp, reference)
            }),
            "eds_k1.5" => (Objective::Eds(1.5), |eds, _| 1.0 - eds),
            "eds_k2.0" => (Objective::Eds(2.0), |eds, _| 1.0 - eds),
            _ => (Objective::GainMinusLoss, |gain, _| gain),
        };
        let (best, here) = eight.best(objective);
        let here = 100.0 * gain_of(here, &default);
        let label = format!("8 GPUs: best {objective}, gain");
        metrics.push(labelled_value(label, 100.0 * gain.get(), here, 0.7));
        let label = format!("8 GPUs: cap of the best {objective} [W]");
        caps.push(labelled_value(label, cap.get(), best, 10.0));
    }
    (metrics, caps)
}
