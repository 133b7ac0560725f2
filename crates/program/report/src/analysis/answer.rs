//! The recommendation from a study: which setting to use, how certain that is, and what was left out.

use sweetspot_decide::{Exclusion, Margin, Objective, Standing};
use sweetspot_quantity::Ratio;

use crate::analysis::choices::{caveats, keep_instruction, set_instruction};
use crate::analysis::recommendation::{reason, without_reference};
use crate::analysis::view::StudyView;
use crate::wording::{format_amount, format_percent, join_words};

/// A recommendation and its reasons.
pub struct Answer {
    /// The recommendation, such as `Set the power cap to 175 W`.
    pub headline: String,
    /// Why this is recommended, such as `best edp within time<=+5%`, or why nothing is recommended.
    pub reason: String,
    /// The relative change of energy at the recommended setting, compared with the reference; `None` if unknown.
    pub energy: Option<Ratio>,
    /// The relative change of time at the recommended setting, compared with the reference; `None` if unknown.
    pub time: Option<Ratio>,
    /// The relative change of average power at the recommended setting, compared with the reference; `None` if unknown.
    pub power: Option<Ratio>,
    /// Further facts about the recommendation, each a name and a sentence.
    pub facts: Vec<(String, String)>,
    /// Warnings about the recommendation.
    pub notes: Vec<String>,
}

impl Answer {
    /// Makes the recommendation for the objective and limits of a view.
    pub fn from_view(view: &StudyView<'_>) -> Self {
        let criteria = view.criteria;
        let limits: Vec<String> = criteria
            .limits
            .iter()
            .map(|limit| format!("`{limit}`"))
            .collect();
        let within = match limits.is_empty() {
            true => String::new(),
            false => format!(" within {}", join_words(&limits)),
        };
        let choice = match &view.choice {
            Ok(choice) => choice,
            Err(reason) => {
                return Self {
                    headline: "Nothing to recommend".to_owned(),
                    reason: format!("{reason}."),
                    energy: None,
                    time: None,
                    power: None,
                    facts: Vec::new(),
                    notes: warnings(view),
                };
            }
        };
        if choice.against_reference.is_none() {
            return Self {
                headline: "No recommendation".to_owned(),
                reason: without_reference(view, choice) + &within,
                energy: None,
                time: None,
                power: None,
                facts: left_out(view)
                    .map(|text| ("left out".to_owned(), text))
                    .into_iter()
                    .collect(),
                notes: warnings(view),
            };
        }
        let objective = criteria.objective;
        let keep = view.keeps_reference();
        let relative = view.relative(choice.candidate).filter(|_| !keep);
        let change = |ratio: f64| Some(Ratio::new(ratio - 1.0));
        let mut facts = vec![(objective.to_string(), value_sentence(view, objective, keep))];
        facts.extend(against_reference(view, keep));
        if let Some((second, margin)) = &choice.runner_up {
            let text = format!(
                "{}: {}",
                view.setting(*second),
                behind(margin, view, objective)
            );
            facts.push(("runner-up".to_owned(), text));
        }
        let ties: Vec<String> = choice
            .tied_with()
            .into_iter()
            .map(|tie| view.setting(tie))
            .collect();
        if !ties.is_empty() {
            facts.push(("may be as good".to_owned(), join_words(&ties)));
        }
        facts.extend(left_out(view).map(|text| ("left out".to_owned(), text)));
        let mut notes: Vec<String> = caveats(choice).into_iter().map(str::to_owned).collect();
        notes.extend(warnings(view));
        Self {
            headline: headline(view, choice.candidate, keep),
            reason: reason(view, choice) + &within,
            energy: relative.and_then(|(_, energy)| change(energy)),
            time: relative
                .and_then(|(time, _)| change(time))
                .or_else(|| time_alone(view, keep)),
            power: relative.and_then(|(time, energy)| change(energy / time)),
            facts,
            notes,
        }
    }
}

/// The relative change of time at the chosen setting, for studies without energy; `None` if the reference is
/// recommended.
fn time_alone(view: &StudyView<'_>, keep: bool) -> Option<Ratio> {
    let chosen = view.chosen().filter(|_| !keep)?;
    let ratio = view.mean(chosen)?.time / view.comparison.reference()?.time;
    ratio.is_finite().then(|| ratio - Ratio::new(1.0))
}

/// The recommendation as an instruction that begins with a capital letter; `keep` recommends the reference.
fn headline(view: &StudyView<'_>, chosen: usize, keep: bool) -> String {
    let text = match keep {
        true => keep_instruction(&view.varied, &view.study.reference),
        false => set_instruction(&view.varied, &view.study.points[chosen]),
    };
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// Describes the objective's value at the best point, and names that point if the reference is recommended.
fn value_sentence(view: &StudyView<'_>, objective: Objective, keep: bool) -> String {
    let Ok(choice) = &view.choice else {
        return String::new();
    };
    let unit = objective.unit(&view.criteria.tariff);
    let runs = match choice.value.runs {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    };
    let interval = choice.value.interval95.map_or_else(
        || format!(" ({runs})"),
        |interval| {
            let (low, high) = (
                format_amount(interval.low, unit),
                format_amount(interval.high, unit),
            );
            format!(" (95 % interval {low} to {high}, {runs})")
        },
    );
    let of = match keep && Some(choice.candidate) != view.reference_index() {
        true => format!(" at {}, the best tried", view.setting(choice.candidate)),
        false => String::new(),
    };
    format_amount(choice.value.value, unit) + &of + &interval
}

/// Compares the best point with the reference: the name of the fact and its text.
fn against_reference(view: &StudyView<'_>, keep: bool) -> Option<(String, String)> {
    let choice = view.choice.as_ref().ok()?;
    let name = "reference".to_owned();
    if Some(choice.candidate) == view.reference_index() {
        return None;
    }
    let Some(margin) = choice.against_reference else {
        return Some((
            name,
            format!(
                "{}: there is no value to compare with",
                view.reference_setting()
            ),
        ));
    };
    let subject = match keep {
        true => view.setting(choice.candidate),
        false => "the choice".to_owned(),
    };
    let text = ahead(&margin, view, view.criteria.objective);
    let mut text = format!("{}: {subject} is {text}", view.reference_setting());
    if let Some((time, energy)) = view.relative(choice.candidate) {
        let (energy, time) = (format_percent(energy - 1.0), format_percent(time - 1.0));
        text += &format!("; energy {energy}, time {time}");
    }
    if keep {
        text += "; so the default is recommended";
    }
    let broken: Vec<String> = choice
        .reference_breaks
        .iter()
        .map(ToString::to_string)
        .collect();
    if !broken.is_empty() {
        text += &format!("; the reference itself {}", join_words(&broken));
    }
    Some((name, text))
}

/// The size of a margin: a percentage, or an amount with its unit.
fn margin_size(margin: &Margin, view: &StudyView<'_>, objective: Objective) -> String {
    match margin.relative {
        Some(share) if share.get().abs() < 0.0005 => "less than 0.1 %".to_owned(),
        Some(share) => format!("{:.1} %", 100.0 * share.get().abs()),
        None if objective == Objective::GainMinusLoss => {
            format!("{:.1} points", 100.0 * margin.by.abs())
        }
        None => format_amount(margin.by.abs(), objective.unit(&view.criteria.tariff)),
    }
}

/// Describes how much better one setting is than another one.
fn ahead(margin: &Margin, view: &StudyView<'_>, objective: Objective) -> String {
    let size = margin_size(margin, view, objective);
    match margin.standing {
        Standing::Better => format!("{size} better, significantly"),
        Standing::Worse => format!("{size} worse"),
        Standing::Same if margin.by < 0.0 => {
            format!("{size} worse, no significant difference")
        }
        Standing::Same => format!("{size} better, no significant difference"),
        Standing::Unknown => format!("{size} better, from a single run"),
    }
}

/// Describes how much a setting is behind the best one.
fn behind(margin: &Margin, view: &StudyView<'_>, objective: Objective) -> String {
    let size = margin_size(margin, view, objective);
    // A search may recommend a point other than the one with the best runs.
    let side = match margin.by < 0.0 {
        true => "ahead",
        false => "behind",
    };
    match margin.standing {
        Standing::Better | Standing::Worse => format!("{size} {side}, significantly"),
        Standing::Same => format!("{size} {side}, no significant difference"),
        Standing::Unknown => format!("{size} {side}, from a single run each"),
    }
}

/// Describes how many points cannot be chosen, grouped by reason; `None` if every point can.
pub fn left_out(view: &StudyView<'_>) -> Option<String> {
    let choice = view.choice.as_ref().ok()?;
    let total = view.study.points.len();
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for excluded in &choice.excluded {
        let why = match &excluded.why {
            Exclusion::Failed(_) => "failed".to_owned(),
            Exclusion::NotRun => "not run".to_owned(),
            Exclusion::NoValue(reason) => format!("without a value ({reason})"),
            Exclusion::Limits(broken) => {
                let limits: Vec<String> = broken
                    .iter()
                    .map(|one| format!("`{}`", one.limit))
                    .collect();
                format!("over {}", join_words(&limits))
            }
        };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => reasons.push((why, 1)),
        }
    }
    let all: usize = reasons.iter().map(|(_, count)| count).sum();
    let counts: Vec<String> = reasons
        .iter()
        .map(|(why, count)| format!("{count} {why}"))
        .collect();
    (all > 0).then(|| format!("{all} of {total}: {}", counts.join(", ")))
}

/// Returns warnings that concern the whole study.
fn warnings(view: &StudyView<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let ran = (0..view.study.points.len()).any(|index| view.mean(index).is_some());
    if view.comparison.reference().is_none() && ran {
        let why = match view.study.reference.failure() {
            Some(failure) => format!("its run failed: {}", failure.reason),
            None => "it was not run".to_owned(),
        };
        notes.push(format!(
            "There is no reference to compare with ({}): {why}. Values are absolute.",
            view.reference_setting()
        ));
    }
    if ran && !view.has_energy() {
        notes.push(format!(
            "No energy of {} was measured, so only time can be compared: choose other devices whose energy counts, or see the sensors with `sweetspot doctor`.",
            view.study.energy_of()
        ));
    }
    let zero = (0..view.study.points.len())
        .filter(|index| view.mean(*index).is_some_and(|mean| mean.time.get() <= 0.0));
    match zero.count() {
        0 => {}
        count => notes.push(format!(
            "{count} configurations have a time of zero: they are left out."
        )),
    }
    notes.extend(run_warnings(view));
    notes
}

/// Says how many runs have warnings, with the first one; `None` if no run has any.
fn run_warnings(view: &StudyView<'_>) -> Option<String> {
    let runs = || view.study.points.iter().flat_map(|point| &point.runs);
    let warned = runs().filter(|run| !run.warnings.is_empty());
    let first = warned.clone().next()?.warnings.first()?;
    let (warned, all) = (warned.count(), runs().count());
    Some(match warned {
        1 => format!("1 of {all} runs has a warning: {first}."),
        _ => format!("{warned} of {all} runs have warnings, such as: {first}."),
    })
}
