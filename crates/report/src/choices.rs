//! The rows of the paper's tables 2 and 3, and the one sentence that a user is after.

use sweetspot_decide::{Objective, Outcome};
use sweetspot_quantity::{Ratio, Watts};
use sweetspot_study::{Point, Study};

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
            outcome,
            energy: outcome.energy / reference.energy - Ratio::new(1.0),
            time: outcome.time / reference.time - Ratio::new(1.0),
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
    let cap_of = |point: &Point| point.configuration.settings.power_cap;
    let default_cap = cap_of(&study.reference)?;
    let best = study.best(objective)?;
    let point = &study.points[best.point];
    if point.configuration == study.reference.configuration || best.reference_is_as_good {
        return Some(format!(
            "Recommendation: keep the default power cap of {default_cap}: no cap tried is significantly better in {objective}."
        ));
    }
    let outcome = point.outcome()?;
    let ties: Vec<Watts> = best
        .tied_with
        .iter()
        .filter_map(|tie| cap_of(&study.points[*tie]))
        .collect();
    Some(format!(
        "Recommendation: set the power cap to {} (best {objective}): {} and {} than at {default_cap}.{}",
        cap_of(point)?,
        change(outcome.energy / reference.energy, "energy"),
        change(outcome.time / reference.time, "time"),
        as_good(&ties),
    ))
}

/// What the measurements cannot tell from the choice.
fn as_good(ties: &[Watts]) -> String {
    let names: Vec<String> = ties.iter().map(Watts::to_string).collect();
    match names.as_slice() {
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

/// The cap as the tables print it.
pub fn cap_text(cap: Option<Watts>) -> String {
    cap.map_or_else(|| "-".to_owned(), |cap| cap.get().to_string())
}
