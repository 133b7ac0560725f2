//! Studies side by side as JSON, schema `sweetspot.compare/1`.

use serde_json::{Map, Value, json};
use sweetspot_stats::Summary;

use super::csv::{column, measures};
use super::{Common, Compared, Contrast};
use crate::study::{settings, summary};

/// SI units, fractions, absent means unknown; `study` is an index into `studies`.
pub fn compare_json(compared: &Compared<'_>) -> Value {
    let question = compared.sides.first().map(|side| side.view.question);
    let studies: Vec<Value> = compared
        .sides
        .iter()
        .map(|side| {
            let study = side.view.study;
            json!({
                "name": side.name,
                "study": study.name(),
                "device": study.device().name,
                "workload": study.subject.workload.name,
                "energy_of": study.energy_of().to_string(),
                "points": study.points.len(),
            })
        })
        .collect();
    let limits = question
        .map(|question| &question.limits)
        .into_iter()
        .flatten();
    json!({
        "schema": "sweetspot.compare/1",
        "objective": question.map(|question| question.objective.to_string()),
        "limits": limits.map(ToString::to_string).collect::<Vec<_>>(),
        "studies": studies,
        "settings": compared.common.iter().map(|common| setting(compared, common)).collect::<Vec<_>>(),
        "best": best(compared),
        "notes": compared.notes,
    })
}

fn setting(compared: &Compared<'_>, common: &Common) -> Value {
    let mut values = Vec::new();
    let mut against = Vec::new();
    for (index, side) in compared.sides.iter().enumerate() {
        let Some(point) = common.points.get(index).and_then(Option::as_ref) else {
            continue;
        };
        let mut object = Map::new();
        object.insert("study".into(), json!(index));
        object.insert("settings".into(), settings(&point.configuration));
        object.insert("status".into(), json!(point.status().to_string()));
        let mut differences = Map::new();
        for measure in measures(compared) {
            let found = measure
                .values(point, &side.view)
                .and_then(|values| Summary::of(&values));
            object.extend(found.map(|found| (column(&measure), Value::Object(summary(&found)))));
            if index > 0
                && let Some(contrast) = compared.contrast(common, index, &measure)
            {
                differences.insert(column(&measure), difference(&contrast));
            }
        }
        values.push(Value::Object(object));
        if index > 0 {
            let mut object = Map::new();
            object.insert("study".into(), json!(index));
            object.extend(differences);
            against.push(Value::Object(object));
        }
    }
    json!({
        "setting": common.setting,
        "reference": common.is_reference,
        "values": values,
        "against_first": against,
    })
}

fn difference(contrast: &Contrast) -> Value {
    let mut object = Map::new();
    object.extend(
        contrast
            .relative
            .map(|relative| ("relative".to_owned(), json!(relative))),
    );
    let interval = contrast.interval95;
    object.extend(interval.map(|(low, high)| ("ci95".to_owned(), json!([low, high]))));
    let significant = contrast.significant;
    object.extend(significant.map(|is| ("significant".to_owned(), json!(is))));
    Value::Object(object)
}

fn best(compared: &Compared<'_>) -> Value {
    let all = compared.objectives().into_iter().map(|objective| {
        let mut first = None;
        let mut sides = Vec::new();
        for (index, side) in compared.sides.iter().enumerate() {
            let view = &side.view;
            let Ok(choice) = view.comparison.choose(objective, &view.question.limits) else {
                continue;
            };
            let value = choice.value.value;
            let mean = view
                .mean(choice.candidate)
                .and_then(|mean| compared.same_work(mean));
            let own = mean.and_then(|mean| objective.value(&mean, view.comparison.basis()).ok());
            let own = own.filter(|_| !objective.needs_reference());
            if index == 0 {
                first = own;
            }
            let mut object = Map::new();
            object.insert("study".into(), json!(index));
            object.insert("point".into(), json!(choice.candidate));
            let configuration = &view.study.points[choice.candidate].configuration;
            object.insert("settings".into(), settings(configuration));
            object.insert("value".into(), json!(value));
            let relative = first.zip(own).map(|(first, own)| own / first - 1.0);
            let relative = relative.filter(|share| share.is_finite());
            object.extend(relative.map(|share| ("relative_to_first".to_owned(), json!(share))));
            if let Some((time, energy)) = view.relative(choice.candidate) {
                let own = json!({"time": time - 1.0, "energy": energy - 1.0});
                object.insert("vs_reference".into(), own);
            }
            sides.push(Value::Object(object));
        }
        (objective.to_string(), Value::Array(sides))
    });
    Value::Object(all.collect())
}
