//! Deviations from table 1, figure 7 and the text: energy of the node that a cap saves, times and speed-ups.

use sweetspot_decide::{Objective, Outcome};
use sweetspot_quantity::Watts;
use sweetspot_study::EnergyOf;

use super::tables::{NodeFacts, read_node_facts};
use crate::PapersError;
use crate::Profiles;
use crate::ValueOrigin;
use crate::deviations::{Column, SimulatorDeviations, Table, Value};

/// The name of the study, which selects the workload profiles.
const STUDY: &str = "node_power_capping_2023";
/// The profile of the paper's GPUs.
const GPU: &str = "quadro_rtx_6000";
/// The default power cap of a GPU in watts.
const DEFAULT_CAP: f64 = 260.0;
/// The power cap of a GPU that the paper recommends, in watts.
const RECOMMENDED_CAP: f64 = 170.0;
/// The numbers of GPUs that the paper used.
const GPU_COUNTS: [u64; 4] = [1, 2, 4, 8];

/// The parameters of the node that were chosen by hand with figure 7 in view: a number of GPUs, which a fit cannot change by
/// small steps.
const CHOSEN_BY_HAND: [&str; 1] = ["all_reduce.gpus_per_link"];

/// The time and energy of the node at each power cap in watts.
struct Curve(Vec<(f64, Outcome)>);

impl Curve {
    /// The time and energy of the node at a power cap, which must be one of the curve's.
    fn outcome_at(&self, cap: f64) -> Outcome {
        let found = self.0.iter().find(|(at, _)| *at == cap);
        found.unwrap_or(&self.0[0]).1.clone()
    }

    /// The time in seconds at a power cap.
    fn time_at(&self, cap: f64) -> f64 {
        self.outcome_at(cap).time.get()
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

    /// The gain of the best cap over the default cap, in percent.
    fn gain(&self, objective: Objective) -> f64 {
        let (_, best) = self.best(objective);
        let default = self.outcome_at(DEFAULT_CAP);
        let gain = match objective {
            Objective::GainMinusLoss => best,
            _ => 1.0 - best / objective.value(&default, &default).unwrap_or(f64::NAN),
        };
        100.0 * gain
    }
}

/// The curves of the node for each number of GPUs that the paper used.
struct Curves(Vec<(u64, Curve)>);

impl Curves {
    /// Simulates the node at each cap, with jobs on 1, 2, 4 and 8 of its GPUs.
    fn new(profiles: &Profiles) -> Result<Self, PapersError> {
        let name = format!("xception@{STUDY}");
        let mut curves = Vec::new();
        for gpus in GPU_COUNTS {
            let caps = (100..=260)
                .step_by(10)
                .map(|cap| Watts::new(f64::from(cap)));
            let points =
                profiles.curve(&[GPU; 8], Some(STUDY), &name, EnergyOf::Node, gpus, caps)?;
            let points = points.into_iter();
            let in_watts = points.map(|(cap, outcome)| (cap.get(), outcome));
            curves.push((gpus, Curve(in_watts.collect())));
        }
        Ok(Self(curves))
    }

    /// The curve for a number of GPUs, which must be one that the paper used.
    fn of(&self, gpus: u64) -> &Curve {
        let found = self.0.iter().find(|(count, _)| *count == gpus);
        &found.unwrap_or(&self.0[0]).1
    }

    /// The speed-up over one GPU.
    fn speedup(&self, gpus: u64, cap: f64) -> f64 {
        self.of(1).time_at(cap) / self.of(gpus).time_at(cap)
    }
}

/// A published value about a number of GPUs, beside the simulated one.
struct NodeRow {
    label: String,
    value: Value,
}

impl NodeRow {
    fn new(gpus: u64, label: &str, published: f64, here: f64) -> Self {
        let count = match gpus {
            1 => "1 GPU".to_owned(),
            _ => format!("{gpus} GPUs"),
        };
        Self {
            label: format!("{count}: {label}"),
            value: Value {
                published,
                here,
                tolerance: None,
                origin: Some(ValueOrigin::Derived),
            },
        }
    }

    /// The row as one that the profiles were fitted to.
    fn fitted(mut self, tolerance: f64) -> Self {
        self.value.origin = Some(ValueOrigin::Fitted);
        self.value.tolerance = Some(tolerance);
        self
    }

    /// The row as one that no parameter follows from.
    fn predicted(mut self, tolerance: f64) -> Self {
        self.value.origin = Some(ValueOrigin::Predicted);
        self.value.tolerance = Some(tolerance);
        self
    }
}

/// A table of published values, beside the simulated ones.
struct NodeTable {
    title: &'static str,
    column: Column,
    rows: Vec<NodeRow>,
}

impl From<NodeTable> for Table {
    fn from(table: NodeTable) -> Self {
        let rows = table.rows.into_iter();
        Self {
            title: table.title.to_owned(),
            columns: vec![table.column],
            rows: rows.map(|row| (row.label, vec![row.value])).collect(),
        }
    }
}

/// Compares the simulated savings, speed-ups and best caps with the paper.
pub fn compare(profiles: &Profiles) -> Result<SimulatorDeviations, PapersError> {
    let tables = node_tables(profiles)?;
    let rows = tables.iter().flat_map(|table| &table.rows);
    let fitted = rows.filter(|row| row.value.origin == Some(ValueOrigin::Fitted));
    Ok(SimulatorDeviations {
        study: STUDY.to_owned(),
        free_parameters: profiles.parameters(STUDY).len() + CHOSEN_BY_HAND.len(),
        by_hand: CHOSEN_BY_HAND.len(),
        values: fitted.count(),
        tables: tables.into_iter().map(Table::from).collect(),
        held_out: Vec::new(),
        not_held_out: 0,
        changed_profiles: Vec::new(),
    })
}

/// The tables of the paper, beside the values that these profiles give.
fn node_tables(profiles: &Profiles) -> Result<Vec<NodeTable>, PapersError> {
    let facts = read_node_facts()?;
    let curves = Curves::new(profiles)?;
    let (gains, caps) = table_1(&facts, curves.of(8));
    Ok(vec![
        NodeTable {
            title: "the text: energy of the node that the best cap saves",
            column: Column::difference("%", 2),
            rows: savings(&facts, &curves),
        },
        NodeTable {
            title: "figure 7, times",
            column: Column::relative("s", 1),
            rows: times(&facts, &curves),
        },
        NodeTable {
            title: "figure 7, speed-ups over one GPU",
            column: Column::relative("x", 2),
            rows: speedups(&facts, &curves),
        },
        NodeTable {
            title: "table 1: gain of the best cap",
            column: Column::difference("%", 2),
            rows: gains,
        },
        NodeTable {
            title: "table 1, the caps",
            column: Column::difference("W", 0),
            rows: caps,
        },
    ])
}

/// The rows for the energy that the best caps save. That of 8 GPUs is in table 1 too.
fn savings(facts: &NodeFacts, curves: &Curves) -> Vec<NodeRow> {
    let savings = facts.savings.iter().filter(|(gpus, _)| *gpus != 8);
    savings
        .map(|(gpus, published)| {
            let here = curves.of(*gpus).gain(Objective::Energy);
            NodeRow::new(*gpus, "energy saved", 100.0 * published.get(), here).fitted(1.0)
        })
        .collect()
}

/// The rows for the times in figure 7.
fn times(facts: &NodeFacts, curves: &Curves) -> Vec<NodeRow> {
    let times = facts.times.iter();
    times
        .map(|(gpus, cap, published)| {
            let here = curves.of(*gpus).time_at(cap.get());
            let label = format!("time at {} W", cap.get());
            NodeRow::new(*gpus, &label, published.get(), here).fitted(0.02)
        })
        .collect()
}

/// The rows for the speed-ups over one GPU.
fn speedups(facts: &NodeFacts, curves: &Curves) -> Vec<NodeRow> {
    let [four, eight, eight_capped] = facts.speedups;
    let row = |gpus, cap: f64, published| {
        let label = format!("speed-up at {cap} W");
        NodeRow::new(gpus, &label, published, curves.speedup(gpus, cap))
    };
    let mut rows = vec![
        row(4, DEFAULT_CAP, four).fitted(0.05),
        // The text says 3.3 "in both cases"; only one of them is fitted.
        row(4, RECOMMENDED_CAP, four).predicted(0.05),
        // The time of one GPU at 260 W is not printed, but follows from this.
        row(8, DEFAULT_CAP, eight).fitted(0.02),
        row(8, RECOMMENDED_CAP, eight_capped),
    ];
    let time = |gpus, cap| facts.time(gpus, cap);
    if let Some((one, two)) = time(1, RECOMMENDED_CAP).zip(time(2, RECOMMENDED_CAP)) {
        rows.insert(0, row(2, RECOMMENDED_CAP, one / two));
    }
    if let Some((eight_time, two)) = time(8, DEFAULT_CAP).zip(time(2, DEFAULT_CAP)) {
        rows.insert(0, row(2, DEFAULT_CAP, eight * eight_time / two));
    }
    rows
}

/// The rows for the gain of the best cap by each metric, and the rows for those caps, which are not fitted.
fn table_1(facts: &NodeFacts, eight: &Curve) -> (Vec<NodeRow>, Vec<NodeRow>) {
    let mut gains = Vec::new();
    let mut caps = Vec::new();
    for (metric, gain, cap) in &facts.best {
        let (objective, is_derived) = match metric.as_str() {
            "energy" => (Objective::Energy, false),
            "eds_k1.5" => (Objective::Eds(1.5), false),
            // These follow from time and energy at 170 W, like the difference of gain and loss.
            "edp" => (Objective::Edp, true),
            "eds_k2.0" => (Objective::Eds(2.0), true),
            _ => (Objective::GainMinusLoss, false),
        };
        let label = format!("gain in {objective}");
        let row = NodeRow::new(8, &label, 100.0 * gain.get(), eight.gain(objective));
        gains.push(if is_derived { row } else { row.fitted(0.7) });
        let label = format!("cap of the best {objective}");
        let (best, _) = eight.best(objective);
        caps.push(NodeRow::new(8, &label, cap.get(), best).predicted(10.0));
    }
    (gains, caps)
}
