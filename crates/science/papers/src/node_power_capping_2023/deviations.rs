//! Table 1, figure 7 and the text: what a cap saves of the whole node's energy, and what GPUs gain in speed.

use sweetspot_decide::{Objective, Outcome};
use sweetspot_quantity::Watts;
use sweetspot_study::EnergyOf;

use super::tables::node_power_capping_2023;
use crate::PapersError;
use crate::Profiles;
use crate::deviations::{Column, StudyDeviations, Table, Value};

const STUDY: &str = "node_power_capping_2023";
const GPU: &str = "quadro_rtx_6000";
const DEFAULT: f64 = 260.0;

/// Time and energy of the node with so many GPUs at each cap.
struct Curve(Vec<(f64, Outcome)>);

impl Curve {
    fn at(&self, cap: f64) -> Outcome {
        let found = self.0.iter().find(|(at, _)| *at == cap);
        found.unwrap_or(&self.0[0]).1.clone()
    }

    /// The best cap by an objective, and its value there; that of the default cap is the reference.
    fn best(&self, objective: Objective) -> (f64, f64) {
        let reference = self.at(DEFAULT);
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

/// Of an objective that needs no reference.
fn value_of(objective: Objective, outcome: &Outcome) -> f64 {
    objective.value(outcome, outcome).unwrap_or(f64::NAN)
}

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

pub fn compare(profiles: &Profiles) -> Result<StudyDeviations, PapersError> {
    let facts = node_power_capping_2023()?;
    let value = |published: f64, here: f64, tolerance: f64| {
        vec![Value {
            published,
            here,
            tolerance: Some(tolerance),
        }]
    };
    let mut curves = Vec::new();
    let mut savings = Vec::new();
    for (gpus, published) in &facts.savings {
        let curve = curve(profiles, *gpus)?;
        let (_, least) = curve.best(Objective::Energy);
        let here = 1.0 - least / value_of(Objective::Energy, &curve.at(DEFAULT));
        let label = format!("{gpus} of 8 GPUs: node energy saved by the best cap");
        savings.push((label, value(100.0 * published.get(), 100.0 * here, 1.0)));
        curves.push(curve);
    }
    let eight = &curves[3];
    let (at_170, default) = (eight.at(170.0), eight.at(DEFAULT));
    let change = |ratio: f64| 100.0 * (ratio - 1.0);
    let time = change((at_170.time / default.time).get());
    let joules = |outcome| value_of(Objective::Energy, outcome);
    let energy = change(joules(&at_170) / joules(&default));
    savings.push(("8 GPUs at 170 W: time".to_owned(), value(9.35, time, 0.7)));
    savings.push((
        "8 GPUs at 170 W: node energy".to_owned(),
        value(-24.38, energy, 0.7),
    ));
    let speedup =
        |gpus: usize, cap: f64| (curves[0].at(cap).time / curves[gpus].at(cap).time).get();
    let speedups = [
        ("4 GPUs", speedup(2, DEFAULT)),
        ("8 GPUs at 260 W", speedup(3, DEFAULT)),
        ("8 GPUs at 170 W", speedup(3, 170.0)),
    ];
    let speedups = speedups
        .into_iter()
        .zip(facts.speedups)
        .map(|((what, here), published)| {
            (
                format!("speed-up of {what} over one"),
                value(published, here, 0.05),
            )
        });
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
        metrics.push((label, value(100.0 * gain.get(), here, 0.7)));
        caps.push((
            format!("8 GPUs: cap of the best {objective} [W]"),
            value(cap.get(), best, 10.0),
        ));
    }
    let table = |title: &str, columns, rows| Table {
        title: title.to_owned(),
        columns,
        rows,
    };
    let seconds = [("260 W", 85.6, default.time), ("170 W", 93.6, at_170.time)];
    let seconds = seconds.map(|(cap, published, here)| {
        (
            format!("8 GPUs at {cap}"),
            value(published, here.get(), 0.05),
        )
    });
    let tables = vec![
        table("the text", vec![Column::difference("%", 2)], savings),
        table(
            "figure 7, speed-ups",
            vec![Column::relative("x", 2)],
            speedups.collect(),
        ),
        table(
            "figure 7, times",
            vec![Column::relative("s", 1)],
            seconds.to_vec(),
        ),
        table("table 1", vec![Column::difference("%", 2)], metrics),
        table("table 1, the caps", vec![Column::difference("W", 0)], caps),
    ];
    Ok(StudyDeviations {
        study: STUDY.to_owned(),
        free_parameters: profiles.free(STUDY, &[], &[STUDY]),
        values: tables.iter().map(|table| table.rows.len()).sum(),
        tables,
    })
}
