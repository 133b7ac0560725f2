//! The rows of the paper's tables 2 and 3, and the one sentence that a user is after.

use sweetspot_decide::{Objective, Outcome};
use sweetspot_quantity::Ratio;
use sweetspot_study::{Point, Study, Varied};

/// A setting and what it was chosen for.
pub struct Choice<'a> {
    /// `default`, `min E`, `max throughput`.
    pub label: String,
    /// What was chosen.
    pub point: &'a Point,
    /// Its means.
    pub outcome: Outcome,
    /// Energy against the reference, less one.
    pub energy: Ratio,
    /// Time against the reference, less one.
    pub time: Ratio,
}

/// The objectives of tables 2 and 3 of power_capping_2022, in their order.
pub const TABLE: [Objective; 4] = [
    Objective::Energy,
    Objective::Edp,
    Objective::Eds(2.0),
    Objective::Eds(1.5),
];

/// The reference, then the best point for each objective of the table, and for the user's own.
pub fn choices(study: &Study, objective: Objective) -> Vec<Choice<'_>> {
    let Some(reference) = study.reference.outcome() else {
        return Vec::new();
    };
    let choose = |label: String, point| -> Option<Choice<'_>> {
        let outcome = Point::outcome(point)?;
        Some(Choice {
            label,
            point,
            energy: outcome.energy? / reference.energy? - Ratio::new(1.0),
            time: outcome.time / reference.time - Ratio::new(1.0),
            outcome,
        })
    };
    let mut rows: Vec<_> = choose("default".to_owned(), &study.reference)
        .into_iter()
        .collect();
    let own = (!TABLE.contains(&objective)).then_some(objective);
    for objective in TABLE.into_iter().chain(own) {
        let best = study.best(objective);
        rows.extend(best.and_then(|best| choose(label(objective), &study.points[best.point])));
    }
    rows
}

/// As the paper writes it.
fn label(objective: Objective) -> String {
    let extreme = if objective.is_maximised() {
        "max"
    } else {
        "min"
    };
    let name = match objective {
        Objective::Energy => "E".to_owned(),
        Objective::Edp => "EDP".to_owned(),
        Objective::Ed2p => "ED2P".to_owned(),
        Objective::Eds(k) => format!("EDS(k={k:?})"),
        other => other.to_string(),
    };
    format!("{extreme} {name}")
}

/// What to do, in one sentence.
pub fn recommendation(study: &Study, objective: Objective) -> Option<String> {
    let reference = study.reference.outcome()?;
    let varied = study.varied();
    let default = setting(&varied, &study.reference);
    let best = study.best(objective)?;
    let point = &study.points[best.point];
    let is_reference = |point: &Point| point.configuration == study.reference.configuration;
    if study.points.iter().all(is_reference) {
        return Some("Nothing to recommend: only the defaults were tried.".to_owned());
    }
    if point.configuration == study.reference.configuration || best.reference_is_as_good {
        let knob = match varied.as_slice() {
            [only] => format!("default {}", knob_name(*only)),
            _ => "defaults".to_owned(),
        };
        return Some(format!(
            "Recommendation: keep the {knob} of {default}: no other tried is significantly better in {objective}."
        ));
    }
    let outcome = point.outcome()?;
    let ties: Vec<String> = best
        .tied_with
        .iter()
        .map(|tie| setting(&varied, &study.points[*tie]))
        .collect();
    let to_set = varied.iter().map(|knob| {
        let value = value_text(*knob, point);
        match knob {
            Varied::Gpus => format!("use {value}"),
            _ => format!("set the {} to {value}", knob_name(*knob)),
        }
    });
    Some(format!(
        "Recommendation: {} (best {objective}): {} and {} than at {default}.{}",
        to_set.collect::<Vec<_>>().join(", "),
        change(outcome.energy? / reference.energy?, "energy"),
        change(outcome.time / reference.time, "time"),
        as_good(&ties),
    ))
}

/// Where the knobs stand, in words.
pub fn setting(varied: &[Varied], point: &Point) -> String {
    let values = varied.iter().map(|knob| value_text(*knob, point));
    values.collect::<Vec<_>>().join(", ")
}

fn knob_name(knob: Varied) -> &'static str {
    match knob {
        Varied::Gpus => "number of GPUs",
        Varied::PowerCap => "power cap",
        Varied::CoreClock => "core clock",
        Varied::MemoryClock => "memory clock",
    }
}

fn value_text(knob: Varied, point: &Point) -> String {
    let settings = &point.configuration.settings;
    let or_default = |text: Option<String>| text.unwrap_or_else(|| "its default".to_owned());
    match knob {
        Varied::Gpus if point.configuration.gpus == 1 => "1 GPU".to_owned(),
        Varied::Gpus => format!("{} GPUs", point.configuration.gpus),
        Varied::PowerCap => or_default(settings.power_cap.map(|cap| cap.to_string())),
        Varied::CoreClock => or_default(settings.core_clock.map(|clock| clock.to_string())),
        Varied::MemoryClock => or_default(settings.memory_clock.map(|clock| clock.to_string())),
    }
}

/// What the measurements cannot tell from the choice.
fn as_good(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => format!(" No significant difference to {one}."),
        [first, .., last] if names.len() > 4 => {
            format!(
                " No significant difference to {} others from {first} to {last}.",
                names.len()
            )
        }
        [most @ .., last] => format!(
            " No significant difference to {} and {last}.",
            most.join(", ")
        ),
    }
}

fn change(ratio: Ratio, what: &str) -> String {
    let by = ratio - Ratio::new(1.0);
    let word = if by < Ratio::ZERO { "less" } else { "more" };
    format!("{:.1} {word} {what}", by.abs())
}

/// A knob's column in a table: its heading and its value.
pub fn heading(knob: Varied) -> &'static str {
    match knob {
        Varied::Gpus => "GPUs",
        Varied::PowerCap => "Power cap\n[W]",
        Varied::CoreClock => "Core clock\n[MHz]",
        Varied::MemoryClock => "Memory clock\n[MHz]",
    }
}

/// As the tables print it.
pub fn cell(knob: Varied, point: &Point) -> String {
    let value = knob.value(&point.configuration);
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
