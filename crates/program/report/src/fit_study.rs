//! What a fit to a study came to: how near each configuration is, for people and as JSON.

use serde_json::{Value, json};
use sweetspot_fit::{Errors, FitErrors, FittedPoint, FittedStudy};
use sweetspot_quantity::Ratio;
use sweetspot_study::{Axis, Configuration};

use crate::json::settings;
use crate::studies::configuration_text;
use crate::table::Rows;
use crate::words::{percent, wrapped};

/// A line for each configuration, measured and fitted, then the errors, the best settings and what to know.
/// `axes` are those that the study varied.
pub fn fit_study_text(axes: &[Axis], fitted: &FittedStudy) -> String {
    let gpu = &fitted.gpu;
    let cap = &gpu.cap;
    let caps = match cap.min == cap.max {
        true => format!("cap {}", cap.default),
        false => format!("caps {} to {}, default {}", cap.min, cap.max, cap.default),
    };
    let title = format!(
        "{}\non {}, {caps}, clock {}\n{} parameters fitted to {} times and energies",
        fitted.workload.network,
        gpu.name,
        gpu.core.default,
        fitted.parameters,
        2 * fitted.points.len()
    );
    let mut parts = vec![
        wrapped(&title, 0),
        table(axes, fitted).terminal(),
        errors(fitted),
    ];
    parts.push(best(axes, fitted).terminal());
    let tried = format!(
        "Tried in the study: {}. Beyond that the profile is physics alone.",
        fitted.explored
    );
    let notes = fitted.notes.iter().map(|note| format!("Note: {note}."));
    let last: Vec<String> = std::iter::once(tried).chain(notes).collect();
    parts.push(
        last.iter()
            .map(|line| wrapped(line, 2))
            .collect::<Vec<_>>()
            .join("\n"),
    );
    parts.join("\n\n") + "\n"
}

fn label(axes: &[Axis], configuration: &Configuration) -> String {
    match configuration_text(axes, configuration) {
        text if text.is_empty() => "default".to_owned(),
        text => text,
    }
}

fn table(axes: &[Axis], fitted: &FittedStudy) -> Rows {
    let mut rows = Rows::new(&[
        "Configuration",
        "Time\nmeasured [s]",
        "fitted\n[s]",
        "off\n[%]",
        "Energy\nmeasured [J]",
        "fitted\n[J]",
        "off\n[%]",
    ]);
    let digits = |value: f64| match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    };
    let off = |ratio: Ratio| percent(ratio.get()).replace(" %", "");
    for point in &fitted.points {
        rows.push(vec![
            label(axes, &point.configuration),
            digits(point.measured.0.get()),
            digits(point.fitted.0.get()),
            off(point.time_deviation()),
            digits(point.measured.1.get()),
            digits(point.fitted.1.get()),
            off(point.energy_deviation()),
        ]);
    }
    rows
}

fn errors(fitted: &FittedStudy) -> String {
    let part = |errors: &Errors| {
        let share = |ratio: Ratio| format!("{:.1} %", 100.0 * ratio.get());
        format!("{} (worst {})", share(errors.mean), share(errors.worst))
    };
    let all = |errors: &FitErrors| {
        format!(
            "time {}, energy {}",
            part(&errors.time),
            part(&errors.energy)
        )
    };
    let mut text = format!("Mean error: {}.", all(&fitted.errors));
    if let Some(left_out) = &fitted.cross_validation {
        text += &format!(
            "\nOf configurations that are left out, every other one: {}.",
            all(left_out)
        );
    }
    if !fitted.errors.is_accurate() {
        text += "\n";
        text += &wrapped(
            "The profile is NOT near the study: more than 5 % off on average. Do not rely on what is tried with it; is there an odd run, a workload that changes over time, or a GPU that something else uses too?",
            0,
        );
    }
    text
}

fn best(axes: &[Axis], fitted: &FittedStudy) -> Rows {
    let mut rows =
        Rows::new(&["Best", "measured", "fitted", "what following it costs [%]"]).with_texts(3);
    for choice in &fitted.choices {
        let at = |index: usize| label(axes, &fitted.points[index].configuration);
        rows.push(vec![
            choice.objective.to_string(),
            at(choice.measured),
            at(choice.fitted),
            format!("{:.2}", 100.0 * choice.regret.get()),
        ]);
    }
    rows
}

/// Schema `sweetspot.fit/1`: SI units, fractions, absent means unknown.
pub fn fit_study_json(study: &str, fitted: &FittedStudy) -> Value {
    let both = |(time, energy): (sweetspot_quantity::Seconds, sweetspot_quantity::Joules)| json!({"time_s": time.get(), "energy_j": energy.get()});
    let point = |point: &FittedPoint| {
        json!({
            "settings": settings(&point.configuration),
            "items": point.items,
            "measured": both(point.measured),
            "fitted": both(point.fitted),
            "off": {"time": point.time_deviation().get(), "energy": point.energy_deviation().get()},
        })
    };
    let errors = |errors: &FitErrors| {
        let part =
            |errors: &Errors| json!({"mean": errors.mean.get(), "worst": errors.worst.get()});
        json!({"time": part(&errors.time), "energy": part(&errors.energy)})
    };
    let best = fitted.choices.iter().map(|choice| {
        let found = json!({
            "measured": choice.measured,
            "fitted": choice.fitted,
            "regret": choice.regret.get(),
        });
        (choice.objective.to_string(), found)
    });
    let best: serde_json::Map<String, Value> = best.collect();
    let mut document = json!({
        "schema": "sweetspot.fit/1",
        "study": study,
        "gpu": fitted.gpu.name,
        "workload": fitted.workload.network,
        "parameters": fitted.parameters,
        "points": fitted.points.iter().map(point).collect::<Vec<_>>(),
        "errors": errors(&fitted.errors),
        "best": best,
        "assumed": fitted.assumed,
        "tried": fitted.explored,
        "notes": fitted.notes,
    });
    if let (Value::Object(map), Some(left_out)) = (&mut document, &fitted.cross_validation) {
        map.insert("left_out".to_owned(), errors(left_out));
    }
    document
}
