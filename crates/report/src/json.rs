//! The JSON of a study, schema `sweetspot.study/1`: SI units, fractions, absent means unknown.

use serde_json::{Map, Value, json};
use sweetspot_decide::{Aim, Objective, Outcome, pareto};
use sweetspot_device::{Domain, KnobDescriptor};
use sweetspot_stats::Summary;
use sweetspot_study::{Configuration, EnergyOf, Point, Status, Study};

const OBJECTIVES: [Objective; 9] = [
    Objective::Energy,
    Objective::Time,
    Objective::Power,
    Objective::Edp,
    Objective::Ed2p,
    Objective::Eds(1.5),
    Objective::Eds(2.0),
    Objective::GainMinusLoss,
    Objective::EnergyPerItem,
];

/// The whole study; `objective` is the one the user asked for.
pub fn study_json(study: &Study, objective: Objective) -> Value {
    let objectives = objectives(objective);
    let reference = study.reference.outcome();
    let (indices, outcomes) = study.outcomes();
    let best: Map<String, Value> = objectives
        .iter()
        .filter_map(|objective| {
            let best = study.best(*objective)?;
            let mut chosen = Map::new();
            chosen.insert("point".into(), json!(best.point));
            if !best.tied_with.is_empty() {
                chosen.insert("tied_with".into(), json!(best.tied_with));
            }
            Some((objective.to_string(), Value::Object(chosen)))
        })
        .collect();
    let front = pareto(&outcomes, &Aim::TIME_AND_ENERGY);
    let front: Vec<usize> = front.into_iter().map(|i| indices[i]).collect();
    let point_json = |point| point_json(study, point, reference.as_ref(), &objectives);
    json!({
        "schema": "sweetspot.study/1",
        "study": study.name(),
        "energy_of": study.energy_of.to_string(),
        "device": device(study),
        "workload": workload(study),
        "seed": study.seed,
        "repeat": study.repeat,
        "objective": objective.to_string(),
        "reference": point_json(&study.reference),
        "points": study.points.iter().map(point_json).collect::<Vec<_>>(),
        "best": best,
        "pareto": front,
    })
}

fn objectives(own: Objective) -> Vec<Objective> {
    let mut all = OBJECTIVES.to_vec();
    if !all.contains(&own) {
        all.push(own);
    }
    all
}

fn workload(study: &Study) -> Value {
    let workload = &study.workload;
    let mut object = Map::new();
    object.insert("name".into(), json!(workload.name));
    object.insert("network".into(), json!(workload.network));
    object.insert("mode".into(), json!(workload.mode));
    for (name, form) in [
        ("conv_algorithm", &workload.conv_algorithm),
        ("dataset", &workload.dataset),
    ] {
        if let Some(form) = form {
            object.insert(name.into(), json!(form));
        }
    }
    object.insert("batch".into(), json!(workload.batch));
    object.insert("items".into(), json!(workload.items));
    if let Some(from) = &workload.scaled_from {
        object.insert("scaled_from".into(), json!(from));
    }
    Value::Object(object)
}

fn device(study: &Study) -> Value {
    let device = &study.device;
    let mut object = Map::new();
    object.insert("uuid".into(), json!(device.id.as_str()));
    object.insert("name".into(), json!(device.name));
    object.insert("profile".into(), json!(study.device_name));
    object.insert("backend".into(), json!(device.backend));
    for knob in &device.knobs {
        if let KnobDescriptor::PowerCap(range) = knob
            && let Domain::Range { min, max } = &range.domain
        {
            let cap = json!({"min": min.get(), "max": max.get(), "default": range.default.get()});
            object.insert("power_cap_w".into(), cap);
        }
    }
    Value::Object(object)
}

fn point_json(
    study: &Study,
    point: &Point,
    reference: Option<&Outcome>,
    objectives: &[Objective],
) -> Value {
    let mut object = Map::new();
    object.insert("settings".into(), settings(&point.configuration));
    match &point.status {
        Status::Ok => object.insert("status".into(), json!("ok")),
        Status::Failed(reason) => {
            object.insert("reason".into(), json!(reason));
            object.insert("status".into(), json!("failed"))
        }
    };
    object.insert("runs".into(), json!(point.runs.len()));
    if let (Some(outcome), Some(time), Some(energy)) =
        (point.outcome(), point.time(), point.energy())
        && let Some(joules) = outcome.energy
    {
        object.insert("time_s".into(), Value::Object(summary(&time)));
        let mut energy = summary(&energy);
        energy.insert("method".into(), json!(study.method));
        object.insert("energy_j".into(), Value::Object(energy));
        if point.configuration.gpus == 1 && study.energy_of == EnergyOf::JobGpus {
            let by_device = json!({ study.device.id.as_str(): joules.get() });
            object.insert("energy_by_device_j".into(), by_device);
        }
        let power = joules / outcome.time;
        object.insert("average_power_w".into(), json!(power.get()));
        if let Some(items) = outcome.items {
            object.insert("items".into(), json!(items as u64));
            object.insert("items_per_s".into(), json!(items / outcome.time.get()));
            object.insert("energy_per_item_j".into(), json!(joules.get() / items));
        }
        object.insert("phases".into(), phases(point));
        if let Some(reference) = reference
            && let Some(of_reference) = reference.energy
        {
            let against = json!({
                "time": (outcome.time / reference.time).get() - 1.0,
                "energy": (joules / of_reference).get() - 1.0,
            });
            object.insert("vs_reference".into(), against);
            let values: Map<String, Value> = objectives
                .iter()
                .filter_map(|o| Some((o.to_string(), json!(o.value(&outcome, reference).ok()?))))
                .collect();
            object.insert("objectives".into(), Value::Object(values));
        }
    }
    Value::Object(object)
}

fn settings(configuration: &Configuration) -> Value {
    let settings = &configuration.settings;
    let mut object = Map::new();
    let mut put = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            object.insert(name.to_owned(), number(value));
        }
    };
    put("power_cap_w", settings.power_cap.map(|cap| cap.get()));
    put(
        "core_clock_mhz",
        settings.core_clock.map(|clock| clock.get()),
    );
    put(
        "memory_clock_mhz",
        settings.memory_clock.map(|clock| clock.get()),
    );
    object.insert("batch".into(), json!(configuration.batch));
    object.insert("gpus".into(), json!(configuration.gpus));
    Value::Object(object)
}

/// Whole numbers without a fraction.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        json!(value as i64)
    } else {
        json!(value)
    }
}

pub(crate) fn summary(summary: &Summary) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("mean".into(), json!(summary.mean));
    if let Some(deviation) = summary.deviation {
        object.insert("sd".into(), json!(deviation));
    }
    if let Some(interval) = summary.interval95 {
        object.insert("ci95".into(), json!([interval.low, interval.high]));
    }
    object
}

fn phases(point: &Point) -> Value {
    let phases = point.phases().into_iter().map(|phase| {
        let mut object = Map::new();
        object.insert("time_s".into(), json!(phase.time.get()));
        object.insert("energy_j".into(), json!(phase.energy.get()));
        let power = (phase.energy / phase.time).get();
        if power.is_finite() {
            object.insert("power_w".into(), json!(power));
        }
        (phase.name, Value::Object(object))
    });
    Value::Object(phases.collect())
}
