//! The rows of the paper's tables 2 and 3, and the one sentence that a user is after.

use sweetspot_decide::{Choice, Criteria, Objective, Outcome};
use sweetspot_quantity::Ratio;
use sweetspot_study::{Axis, Point, Study};

/// A setting and what it was chosen for.
pub struct Row<'a> {
    /// `default`, `min E`, `max throughput`.
    pub label: String,
    /// What was chosen.
    pub point: &'a Point,
    /// Its means.
    pub outcome: Outcome,
    /// Energy against the reference, less one.
    pub energy: Option<Ratio>,
    /// Time against the reference, less one.
    pub time: Option<Ratio>,
}

/// The objectives of tables 2 and 3 of power_capping_2022, in their order.
pub const TABLE: [Objective; 4] = [
    Objective::Energy,
    Objective::Edp,
    Objective::Eds(2.0),
    Objective::Eds(1.5),
];

/// The reference, then the best point for each objective of the table, and for the user's own.
pub fn choices<'a>(study: &'a Study, question: &Criteria) -> Vec<Row<'a>> {
    let comparison = study.comparison(&question.tariff);
    // For the same work, as everything is compared.
    let against = comparison.reference();
    let row = |label: String, point: &'a Point, outcome: Option<&Outcome>| -> Option<Row<'a>> {
        let outcome = outcome?.clone();
        Some(Row {
            label,
            point,
            energy: against.and_then(|against| less_one(outcome.energy? / against.energy?)),
            time: against.and_then(|against| less_one(outcome.time / against.time)),
            outcome,
        })
    };
    let mut rows: Vec<_> = row("default".to_owned(), &study.reference, against)
        .into_iter()
        .collect();
    let own = question.objective;
    let own = (!TABLE.contains(&own)).then_some(own);
    for objective in TABLE.into_iter().chain(own) {
        let choice = comparison.choose(objective, &question.limits).ok();
        rows.extend(choice.and_then(|choice| {
            let chosen = choice.candidate;
            row(
                label(objective),
                &study.points[chosen],
                comparison.mean(chosen),
            )
        }));
    }
    rows
}

/// By how much it is more than one, where it is anything.
fn less_one(ratio: Ratio) -> Option<Ratio> {
    ratio.is_finite().then(|| ratio - Ratio::new(1.0))
}

/// As the paper writes it.
pub fn label(objective: Objective) -> String {
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

/// What to do, in one sentence, or why nothing can be said.
pub fn recommendation(study: &Study, question: &Criteria) -> String {
    let objective = question.objective;
    let comparison = study.comparison(&question.tariff);
    let choice = match study.choose(&comparison, question) {
        Ok(choice) => choice,
        Err(reason) => return format!("Nothing to recommend: {reason}."),
    };
    let varied = study.varied_axes();
    let default = setting(&varied, &study.reference);
    let candidate = choice.candidate;
    let searched = study
        .search_recommendation(question)
        .filter(|answer| answer.point == candidate);
    let point = &study.points[candidate];
    let is_reference = point.configuration == study.reference.configuration;
    if is_reference || choice.reference_is_as_good() == Some(true) {
        return format!(
            "Recommendation: {}: no other tried is significantly better in {objective}.",
            to_keep(&varied, &study.reference)
        );
    }
    let limits: String = question
        .limits
        .iter()
        .map(|limit| format!(", {limit}"))
        .collect();
    let gain = gain(comparison.mean(candidate), comparison.reference());
    let gain = gain.map_or(String::new(), |gain| format!(": {gain} than at {default}"));
    let ties = choice.tied_with.iter();
    let ties: Vec<String> = ties
        .map(|tie| setting(&varied, &study.points[*tie]))
        .collect();
    let mut text = format!(
        "Recommendation: {} (best {objective}{limits}){gain}.{}",
        to_set(&varied, point),
        as_good(&ties),
    );
    if let Some(regret) = searched.and_then(|answer| answer.expected_regret) {
        text += &format!(
            " By the search's model the best setting is {:.1} % better than it, on average.",
            100.0 * regret / (1.0 + regret)
        );
        return text;
    }
    for caveat in caveats(&choice) {
        text += &format!(" {caveat}");
    }
    text
}

/// What is to be known about a choice.
pub fn caveats(choice: &Choice) -> Vec<&'static str> {
    let mut told = Vec::new();
    if choice.per_item {
        told.push(
            "All runs took equally long, so that they are compared for the same number of items.",
        );
    }
    if !choice.undecided.is_empty() || choice.value.runs < 2 {
        told.push("With one run each, differences cannot be told from noise: use --repeat.");
    }
    told
}

/// What to do to come to a point.
pub fn to_set(varied: &[Axis], point: &Point) -> String {
    let each = varied.iter().map(|axis| {
        let value = value_text(axis, point);
        match axis {
            Axis::Gpus | Axis::Parameter(_) => format!("use {value}"),
            _ => format!("set the {} to {value}", axis_name(axis)),
        }
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What to do to stay at the reference.
pub fn to_keep(varied: &[Axis], reference: &Point) -> String {
    let default = setting(varied, reference);
    match varied {
        // Its value says already what it is.
        [Axis::Gpus | Axis::Parameter(_)] => format!("keep the default of {default}"),
        [only] => format!("keep the default {} of {default}", axis_name(only)),
        _ => format!("keep the defaults of {default}"),
    }
}

/// `26.8 % less energy and 18.8 % more time`.
fn gain(here: Option<&Outcome>, there: Option<&Outcome>) -> Option<String> {
    let (here, there) = (here?, there?);
    let time = change(here.time / there.time, "time");
    Some(match here.energy.zip(there.energy) {
        Some((energy, before)) => format!("{} and {time}", change(energy / before, "energy")),
        None => time,
    })
}

/// Where the knobs stand, in words.
pub fn setting(varied: &[Axis], point: &Point) -> String {
    let values = varied.iter().map(|axis| value_text(axis, point));
    values.collect::<Vec<_>>().join(", ")
}

/// An axis in words.
pub fn axis_name(axis: &Axis) -> String {
    match axis {
        Axis::Gpus => "number of GPUs".to_owned(),
        Axis::Parameter(name) => name.clone(),
        knob => knob.name().replace('-', " "),
    }
}

/// Its value with the unit.
pub fn value_text(axis: &Axis, point: &Point) -> String {
    let Some(value) = axis.text(&point.configuration) else {
        return "its default".to_owned();
    };
    match axis {
        Axis::Gpus if value == "1" => "1 GPU".to_owned(),
        Axis::Gpus => format!("{value} GPUs"),
        Axis::PowerCap => format!("{value} W"),
        Axis::CoreClock | Axis::MemoryClock => format!("{value} MHz"),
        Axis::Parameter(name) => format!("{name} {value}"),
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

/// An axis' column in a table: its heading.
pub fn heading(axis: &Axis) -> String {
    match axis {
        Axis::Gpus => "GPUs".to_owned(),
        Axis::PowerCap => "Power cap\n[W]".to_owned(),
        Axis::CoreClock => "Core clock\n[MHz]".to_owned(),
        Axis::MemoryClock => "Memory clock\n[MHz]".to_owned(),
        Axis::Parameter(name) => name.clone(),
    }
}

/// As the tables print it.
pub fn cell(axis: &Axis, point: &Point) -> String {
    axis.text(&point.configuration)
        .unwrap_or_else(|| "-".to_owned())
}
