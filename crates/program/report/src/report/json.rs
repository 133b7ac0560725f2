//! The JSON of `sweetspot report`: the study's, with the answer, the ranges and the means beside it.

use serde_json::{Map, Value, json};
use sweetspot_decide::{Margin, Question, Standing};
use sweetspot_study::Study;

use crate::analysis::answer::Answer;
use crate::analysis::groups::Grouped;
use crate::analysis::ranges::better;
use crate::analysis::view::View;
use crate::study::study_json;

/// Schema `sweetspot.study/1` with `answer`, `ranges` and `groups`.
pub fn report_json(study: &Study, question: &Question, grouped: Option<&Grouped>) -> Value {
    let view = View::new(study, question);
    let mut document = study_json(study, question);
    if let Value::Object(object) = &mut document {
        object.insert("answer".to_owned(), answer(&view));
        object.insert("ranges".to_owned(), ranges(&view));
        if let Some(grouped) = grouped {
            object.insert("groups".to_owned(), groups(grouped));
        }
    }
    document
}

fn answer(view: &View<'_>) -> Value {
    let told = Answer::of(view);
    let mut object = Map::new();
    object.insert("text".into(), json!(told.headline));
    object.insert("reason".into(), json!(told.reason));
    object.insert("notes".into(), json!(told.notes));
    let Ok(choice) = &view.choice else {
        return Value::Object(object);
    };
    object.insert("point".into(), json!(choice.candidate));
    object.insert("value".into(), json!(choice.value.value));
    let interval = choice.value.interval95;
    object
        .extend(interval.map(|interval| ("ci95".to_owned(), json!([interval.low, interval.high]))));
    if let Some((second, margin)) = &choice.runner_up {
        let mut value = margin_json(margin);
        value["point"] = json!(second);
        object.insert("runner_up".into(), value);
    }
    let against = choice.against_reference.as_ref();
    object.extend(against.map(|margin| ("against_reference".to_owned(), margin_json(margin))));
    object.insert("tied_with".into(), json!(choice.tied_with));
    let excluded = choice
        .excluded
        .iter()
        .map(|one| json!({"point": one.candidate, "why": one.why.to_string()}));
    object.insert("excluded".into(), excluded.collect());
    Value::Object(object)
}

fn margin_json(margin: &Margin) -> Value {
    let mut object = Map::new();
    object.insert("better_by".into(), json!(margin.by));
    let relative = margin.relative;
    object.extend(relative.map(|share| ("relative".to_owned(), json!(share.get()))));
    let interval = margin.interval95;
    object
        .extend(interval.map(|interval| ("ci95".to_owned(), json!([interval.low, interval.high]))));
    let significant = match margin.standing {
        Standing::Better | Standing::Worse => Some(true),
        Standing::Same => Some(false),
        Standing::Unknown => None,
    };
    object.extend(significant.map(|is| ("significant".to_owned(), json!(is))));
    Value::Object(object)
}

fn ranges(view: &View<'_>) -> Value {
    let ends = |ranges: &[sweetspot_decide::Range<f64>]| -> Vec<[f64; 2]> {
        ranges.iter().map(|range| [range.low, range.high]).collect()
    };
    let all = better(view).into_iter().map(|one| {
        let mut object = Map::new();
        object.insert("axis".into(), json!(one.axis.column()));
        object.insert("objective".into(), json!(one.objective.to_string()));
        match &one.ranges {
            Ok(ranges) => object.insert("better".into(), json!(ends(ranges))),
            Err(reason) => object.insert("reason".into(), json!(reason)),
        };
        object.insert("significantly_better".into(), json!(ends(&one.significant)));
        Value::Object(object)
    });
    all.collect()
}

fn groups(grouped: &Grouped) -> Value {
    let of = |group: &sweetspot_decide::Group<usize>| {
        let text = &grouped.values[group.by];
        let by = text
            .parse::<f64>()
            .map_or_else(|_| json!(text), |number| json!(number));
        json!({"by": by, "mean": group.mean, "relative": group.relative.get()})
    };
    json!({
        "by": grouped.by.column(),
        "over": grouped.over.iter().map(|axis| axis.column()).collect::<Vec<_>>(),
        "mean": grouped.mean.to_string(),
        "values": grouped.groups.groups.iter().map(of).collect::<Vec<_>>(),
        "best": grouped.groups.best,
        "saving": grouped.groups.saving.get(),
        "combinations": grouped.groups.combinations,
        "left_out": grouped.groups.left_out,
    })
}
