//! The best setting for each objective, as in tables 2 and 3 of power_capping_2022, and the recommendation.

use sweetspot_decide::{Choice, Criteria, Objective, Outcome};
use sweetspot_quantity::Ratio;
use sweetspot_study::{Axis, Point, Study};

use crate::settings::{axis_name, setting, value_text};

/// The best setting for an objective, as a row of a table.
pub struct ChoiceRow<'a> {
    /// The objective, such as `min E`, or `default` for the reference.
    pub label: String,
    /// The chosen point.
    pub point: &'a Point,
    /// The mean time and energy of the point, for the same work as at all other points.
    pub outcome: Outcome,
    /// The relative change of energy against the reference.
    pub energy: Option<Ratio>,
    /// The relative change of time against the reference.
    pub time: Option<Ratio>,
}

/// The objectives of tables 2 and 3 of power_capping_2022, in their order.
pub const TABLE_OBJECTIVES: [Objective; 4] = [
    Objective::Energy,
    Objective::Edp,
    Objective::Eds(2.0),
    Objective::Eds(1.5),
];

/// Returns the reference, then the best point for each objective of the table and for the user's objective.
pub fn choices<'a>(study: &'a Study, criteria: &Criteria) -> Vec<ChoiceRow<'a>> {
    let comparison = study.comparison(&criteria.tariff);
    // All points are compared for the same work.
    let against = comparison.reference();
    let row =
        |label: String, point: &'a Point, outcome: Option<&Outcome>| -> Option<ChoiceRow<'a>> {
            let outcome = outcome?.clone();
            Some(ChoiceRow {
                label,
                point,
                energy: against
                    .and_then(|against| relative_change(outcome.energy? / against.energy?)),
                time: against.and_then(|against| relative_change(outcome.time / against.time)),
                outcome,
            })
        };
    let mut rows: Vec<_> = row("default".to_owned(), &study.reference, against)
        .into_iter()
        .collect();
    let own = criteria.objective;
    let own = (!TABLE_OBJECTIVES.contains(&own)).then_some(own);
    for objective in TABLE_OBJECTIVES.into_iter().chain(own) {
        let best = comparison.best_mean(objective, &criteria.limits).ok();
        rows.extend(best.and_then(|best| {
            let label = objective_label(objective);
            row(label, &study.points[best], comparison.mean(best))
        }));
    }
    rows
}

/// Returns the ratio minus 1, or `None` if that is not finite.
fn relative_change(ratio: Ratio) -> Option<Ratio> {
    ratio.is_finite().then(|| ratio - Ratio::new(1.0))
}

/// Names an objective as power_capping_2022 does, such as `min E`.
pub fn objective_label(objective: Objective) -> String {
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

/// Returns warnings about a choice.
pub fn caveats(choice: &Choice) -> Vec<&'static str> {
    let mut caveats = Vec::new();
    if choice.per_item {
        caveats
            .push("All runs took equally long, so they are compared for the same number of items.");
    }
    if choice.fewest_runs < 2 {
        caveats.push("With one run of a setting, the noise of runs is estimated, not measured.");
    }
    caveats
}

/// The instruction to set a point's knobs, such as `set the power cap to 175 W`.
pub fn set_instruction(varied: &[Axis], point: &Point) -> String {
    let each = varied.iter().map(|axis| {
        let value = value_text(axis, point);
        match axis {
            Axis::Gpus | Axis::Parameter(_) => format!("use {value}"),
            _ => format!("set the {} to {value}", axis_name(axis)),
        }
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The instruction to keep the defaults, such as `keep the default of 300 W`.
pub fn keep_instruction(varied: &[Axis], reference: &Point) -> String {
    let default = setting(varied, reference);
    match varied {
        // The value of these axes names the axis already.
        [Axis::Gpus | Axis::Parameter(_)] => format!("keep the default of {default}"),
        [only] => format!("keep the default {} of {default}", axis_name(only)),
        _ => format!("keep the defaults of {default}"),
    }
}

/// Describes the change from `there` to `here`, such as `26.8 % less energy and 18.8 % more time`.
pub(crate) fn gain(here: Option<&Outcome>, there: Option<&Outcome>) -> Option<String> {
    let (here, there) = (here?, there?);
    let time = change(here.time / there.time, "time");
    Some(match here.energy.zip(there.energy) {
        Some((energy, before)) => format!("{} and {time}", change(energy / before, "energy")),
        None => time,
    })
}

/// Describes the change of one quantity, such as `26.8 % less energy`.
fn change(ratio: Ratio, what: &str) -> String {
    let by = ratio - Ratio::new(1.0);
    let word = if by < Ratio::ZERO { "less" } else { "more" };
    format!("{:.1} {word} {what}", by.abs())
}
