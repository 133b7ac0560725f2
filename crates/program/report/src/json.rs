//! The JSON of a study, schema `sweetspot.study/1`: SI units, fractions, absent means unknown.

use serde_json::{Map, Value, json};
use sweetspot_decide::{Aim, Comparison, Criteria, Objective, Outcome};
use sweetspot_device::{Domain, KnobDescriptor};
use sweetspot_stats::Summary;
use sweetspot_study::{Axis, Configuration, Point, Study};

use crate::words::ended;

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

/// The whole study; `question` is what the user asked.
pub fn study_json(study: &Study, question: &Criteria) -> Value {
    let objectives = objectives(question.objective);
    let comparison = study.comparison(&question.tariff);
    let best: Map<String, Value> = objectives
        .iter()
        .filter_map(|objective| {
            let question = Criteria {
                objective: *objective,
                ..question.clone()
            };
            let choice = study.choose(&comparison, &question).ok()?;
            let mut chosen = Map::new();
            chosen.insert("point".into(), json!(choice.candidate));
            if !choice.tied_with.is_empty() {
                chosen.insert("tied_with".into(), json!(choice.tied_with));
            }
            Some((objective.to_string(), Value::Object(chosen)))
        })
        .collect();
    let limits: Vec<String> = question.limits.iter().map(ToString::to_string).collect();
    let points = study.points.iter().enumerate();
    let points: Vec<Value> = points
        .map(|(index, point)| {
            let same_work = comparison.mean(index);
            point_json(point, same_work, &comparison, &objectives)
        })
        .collect();
    let of_reference = comparison.reference();
    let reference = point_json(&study.reference, of_reference, &comparison, &objectives);
    let mut object = json!({
        "schema": "sweetspot.study/1",
        "study": study.name(),
        "energy_of": study.energy_of().to_string(),
        "device": device(study),
        "workload": workload(study),
        "seed": study.plan.seed,
        "repeat": study.plan.repeat,
        "axes": study.plan.axes.iter().map(Axis::column).collect::<Vec<_>>(),
        "objective": question.objective.to_string(),
        "limits": limits,
        "reference": reference,
        "points": points,
        "best": best,
        "pareto": comparison.pareto(&Aim::TIME_AND_ENERGY),
    });
    if let Some(search) = search(study) {
        object["search"] = search;
    }
    object
}

/// What a strategy came to, where one decided what was run: for its own objective and limits.
fn search(study: &Study) -> Option<Value> {
    let search = study.plan.search.as_ref()?;
    let searched = study.search_progress()?;
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("strategy", json!(search.strategy.to_string()));
    put("objective", json!(search.objective.to_string()));
    put(
        "limits",
        json!(
            search
                .limits
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        ),
    );
    put("evaluations", json!(searched.evaluations));
    let learns = search.prior.iter().map(|earlier| json!(earlier.name));
    put("learns_from", learns.collect());
    if let Some(done) = searched.stop_reason {
        put("ended", json!(ended(done)));
    }
    if let Some(answer) = searched.recommendation {
        if let Some(point) = study.points.get(answer.point) {
            put("point", json!(answer.point));
            put("choice", settings(&point.configuration));
        }
        if let Some(regret) = answer.expected_regret {
            put("expected_regret", json!(regret));
        }
    }
    Some(Value::Object(object))
}

fn objectives(own: Objective) -> Vec<Objective> {
    let mut all = OBJECTIVES.to_vec();
    if !all.contains(&own) {
        all.push(own);
    }
    all
}

fn workload(study: &Study) -> Value {
    let workload = &study.subject.workload;
    let mut object = Map::new();
    object.insert("name".into(), json!(workload.name));
    for (name, text) in [
        ("network", &workload.network),
        ("mode", &workload.mode),
        ("conv_algorithm", &workload.conv_algorithm),
        ("dataset", &workload.dataset),
        ("scaled_from", &workload.scaled_from),
    ] {
        object.extend(text.as_ref().map(|text| (name.to_owned(), json!(text))));
    }
    for (name, number) in [("batch", workload.batch), ("items", workload.items)] {
        object.extend(number.map(|number| (name.to_owned(), json!(number))));
    }
    let command = workload.command.as_ref();
    object.extend(command.map(|command| ("command".to_owned(), json!(command))));
    Value::Object(object)
}

fn device(study: &Study) -> Value {
    let device = study.device();
    let mut object = Map::new();
    object.insert("uuid".into(), json!(device.id.as_str()));
    object.insert("name".into(), json!(device.name));
    object.insert("profile".into(), json!(study.subject.device_name));
    object.insert("backend".into(), json!(device.backend));
    let devices = study.subject.devices.iter();
    let uuids: Vec<&str> = devices.map(|device| device.id.as_str()).collect();
    object.insert("uuids".into(), json!(uuids));
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

/// What is compared with the reference is compared for the same work.
fn point_json(
    point: &Point,
    same_work: Option<&Outcome>,
    comparison: &Comparison,
    objectives: &[Objective],
) -> Value {
    let mut object = Map::new();
    object.insert("settings".into(), settings(&point.configuration));
    object.insert("status".into(), json!(point.status().to_string()));
    if let Some(failure) = point.failure() {
        object.insert("reason".into(), json!(failure.reason));
    }
    object.insert("runs".into(), json!(point.results().count()));
    let enforced = point.reduced_caps();
    if !enforced.is_empty() {
        let enforced = enforced.iter().map(|one| {
            json!({
                "uuid": one.device.as_str(),
                "requested_w": one.requested.get(),
                "enforced_w": one.enforced.get(),
                "reason": one.reason,
            })
        });
        object.insert("enforced".into(), enforced.collect());
    }
    let (Some(outcome), Some(time)) = (point.outcome(), point.time()) else {
        return Value::Object(object);
    };
    object.insert("time_s".into(), Value::Object(summary(&time)));
    if let Some(energy) = point.energy() {
        let mut energy = summary(&energy);
        let method = point.method();
        energy.extend(method.map(|method| ("method".to_owned(), json!(method))));
        object.insert("energy_j".into(), Value::Object(energy));
    }
    let by_device = point.energy_by_device().into_iter();
    let by_device = by_device.map(|(uuid, energy)| (uuid, json!(energy.get())));
    object.insert(
        "energy_by_device_j".into(),
        Value::Object(by_device.collect()),
    );
    let mut put = |name: &str, value: Option<f64>| {
        let value = value.filter(|value| value.is_finite());
        object.extend(value.map(|value| (name.to_owned(), json!(value))));
    };
    let joules = outcome.energy.map(|energy| energy.get());
    put(
        "average_power_w",
        point.average_power().map(|power| power.get()),
    );
    put("items", outcome.items);
    put(
        "items_per_s",
        outcome.items.map(|items| items / outcome.time.get()),
    );
    put(
        "energy_per_item_j",
        joules
            .zip(outcome.items)
            .map(|(joules, items)| joules / items),
    );
    let values = point.values().into_iter();
    let values = values.map(|(name, value)| (name, json!(value.mean)));
    object.insert("values".into(), Value::Object(values.collect()));
    object.insert("phases".into(), phases(point));
    let Some(outcome) = same_work else {
        return Value::Object(object);
    };
    if let Some(reference) = comparison.reference() {
        let mut against = Map::new();
        let mut put = |name: &str, ratio: Option<f64>| {
            let ratio = ratio.filter(|ratio| ratio.is_finite());
            against.extend(ratio.map(|ratio| (name.to_owned(), json!(ratio - 1.0))));
        };
        put("time", Some((outcome.time / reference.time).get()));
        let energies = outcome.energy.zip(reference.energy);
        put("energy", energies.map(|(here, there)| (here / there).get()));
        object.insert("vs_reference".into(), Value::Object(against));
    }
    let values: Map<String, Value> = objectives
        .iter()
        .filter_map(|objective| {
            let value = objective.value(outcome, comparison.basis()).ok()?;
            Some((objective.to_string(), json!(value)))
        })
        .collect();
    object.insert("objectives".into(), Value::Object(values));
    Value::Object(object)
}

pub(crate) fn settings(configuration: &Configuration) -> Value {
    let mut object = Map::new();
    let knobs = [Axis::PowerCap, Axis::CoreClock, Axis::MemoryClock];
    let parameters = configuration.parameters.keys().cloned();
    let parameters = parameters.map(Axis::Parameter);
    for axis in knobs.into_iter().chain(parameters).chain([Axis::Gpus]) {
        let value = match axis.number(configuration) {
            Some(number) => number_json(number),
            None => match axis.text(configuration) {
                Some(_) if axis == Axis::PowerCap => {
                    let caps = configuration.power_caps.iter();
                    caps.map(|cap| number_json(cap.get())).collect()
                }
                Some(text) => json!(text),
                None => continue,
            },
        };
        object.insert(axis.column().to_owned(), value);
    }
    Value::Object(object)
}

/// Whole numbers without a fraction.
fn number_json(value: f64) -> Value {
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
