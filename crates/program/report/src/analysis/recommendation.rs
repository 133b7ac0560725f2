//! The recommendation of a study: which setting to use, which others may be as good, and what it saves.

use sweetspot_decide::{
    Change, Choice, Criteria, Exclusion, MAX_TIE_LOSS, NEGLIGIBLE_GAIN, Objective, Preference,
};
use sweetspot_study::{Study, is_sure};

use crate::analysis::choices::{caveats, keep_instruction, set_instruction};
use crate::analysis::view::StudyView;
use crate::settings::setting;

/// With fewer runs of each setting than this, more runs are suggested.
const ENOUGH_RUNS: usize = 3;

/// The recommendation of a study for an objective and limits.
pub struct Recommendation {
    /// Whether a setting other than the reference is recommended.
    pub change: bool,
    /// The index of the recommended point; absent if the reference is recommended and is not one of the points.
    pub point: Option<usize>,
    /// The indices of the points that may be the best.
    pub may_be_best: Vec<usize>,
    /// The relative change of energy against the reference; absent if it is unknown or nothing is to be changed.
    pub energy: Option<Change>,
    /// The relative change of time against the reference; absent if it is unknown or nothing is to be changed.
    pub time: Option<Change>,
    /// The probability that the recommended change gains nothing; absent if nothing is to be changed.
    pub chance_of_no_gain: Option<f64>,
    /// The probability that no setting gains more than [`NEGLIGIBLE_GAIN`] against the reference; absent if the reference
    /// does not meet the limits.
    pub chance_nothing_gains: Option<f64>,
    /// The expected loss against the truly best setting, as a share; absent if it is unknown.
    pub expected_loss: Option<f64>,
    /// Why this is recommended, such as `fastest of 6 settings that may be best in edp`.
    pub reason: String,
}

impl Recommendation {
    /// Makes the recommendation; `None` if no point can be chosen, or if the reference has no result to compare with.
    pub fn from_view(view: &StudyView<'_>) -> Option<Self> {
        let choice = view.choice.as_ref().ok()?;
        choice.against_reference.as_ref()?;
        let change = !view.keeps_reference();
        let changed = |objective: Objective| {
            let assessment = view.comparison.assess(objective).filter(|_| change)?;
            assessment.change(choice.candidate)
        };
        Some(Self {
            change,
            point: match change {
                true => Some(choice.candidate),
                false => view.reference_index(),
            },
            may_be_best: choice.may_be_best.clone(),
            energy: changed(Objective::Energy),
            time: changed(Objective::Time),
            chance_of_no_gain: choice.chance_of_no_gain.filter(|_| change),
            chance_nothing_gains: choice.chance_nothing_gains,
            expected_loss: choice.expected_loss,
            reason: reason(view, choice),
        })
    }
}

/// Why the recommended setting is recommended.
pub fn reason(view: &StudyView<'_>, choice: &Choice) -> String {
    let objective = view.criteria.objective;
    if view.keeps_reference() {
        let mut tied = choice.may_be_best.iter();
        let is_alone = tied.all(|own| Some(*own) == view.reference_index());
        // A setting that ran and is worse is the second best.
        if is_alone && choice.runner_up.is_none() {
            let mut excluded = choice.excluded.iter();
            let has_limits = excluded.any(|one| matches!(one.why, Exclusion::Limits(_)));
            let why = match has_limits {
                true => "meets the limits",
                false => "has a result to compare with",
            };
            return format!("no other setting {why}");
        }
        return format!("no other setting is significantly better in {objective}");
    }
    let preferred = match view.criteria.preference {
        Preference::Time => "fastest",
        Preference::Energy => "least energy",
        Preference::Mean => "best mean",
    };
    let ties = choice.preferred_of.len();
    if ties < 2 {
        return format!("best {objective}");
    }
    match ties == choice.may_be_best.len() {
        true => format!("{preferred} of {ties} settings that may be best in {objective}"),
        false => format!(
            "{preferred} of {ties} settings within {:.0} % of the best {objective}",
            100.0 * MAX_TIE_LOSS
        ),
    }
}

/// Writes the recommendation in one paragraph, or why there is none.
pub fn recommendation(study: &Study, criteria: &Criteria) -> String {
    let view = StudyView::new(study, criteria);
    let choice = match &view.choice {
        Ok(choice) => choice,
        Err(reason) => return format!("Nothing to recommend: {reason}."),
    };
    if choice.against_reference.is_none() {
        return format!("No recommendation: {}.", without_reference(&view, choice));
    }
    let reason = reason(&view, choice);
    if view.keeps_reference() {
        let keep = keep_instruction(&view.varied, &study.reference);
        let mut text = format!("Recommendation: {keep}: {reason}.");
        // A search that answers with the reference also judges settings that it did not run.
        if study.search_recommendation(criteria).is_none() {
            text += &ties_sentence(&view, choice, view.reference_index());
            text += &no_gain_sentence(choice);
            text += &certainty_sentence(&view, choice);
        }
        for caveat in caveats(choice) {
            text += &format!(" {caveat}");
        }
        return text;
    }
    let limits: String = criteria
        .limits
        .iter()
        .map(|limit| format!(", {limit}"))
        .collect();
    let candidate = choice.candidate;
    let default = setting(&view.varied, &study.reference);
    let gain = view.gain(candidate);
    let gain = gain.map_or(String::new(), |gain| format!(": {gain} than at {default}"));
    let set = set_instruction(&view.varied, &study.points[candidate]);
    let mut text = format!("Recommendation: {set} ({reason}{limits}){gain}.");
    let searched = study.search_recommendation(criteria);
    let searched = searched.filter(|searched| searched.point == candidate);
    if let Some(regret) = searched.and_then(|searched| searched.expected_regret) {
        text += &format!(
            " The search expects the best setting to be {:.1} % better, on average.",
            100.0 * regret / (1.0 + regret)
        );
        return text;
    }
    if !choice.reference_breaks.is_empty() {
        text += " The reference does not meet the limits.";
    }
    text += &ties_sentence(&view, choice, Some(candidate));
    text += &no_gain_sentence(choice);
    text += &certainty_sentence(&view, choice);
    for caveat in caveats(choice) {
        text += &format!(" {caveat}");
    }
    text
}

/// How many runs of each setting would tell apart more of the settings that may be best; `None` if there are enough
/// runs, or if there is nothing to tell apart.
pub fn suggested_runs(study: &Study, criteria: &Criteria) -> Option<usize> {
    /// The number of runs of each setting that is suggested.
    const SUGGESTED: usize = 5;
    let view = StudyView::new(study, criteria);
    let choice = view.choice.as_ref().ok()?;
    let is_useful = study.plan.search.is_none()
        && choice.fewest_runs < ENOUGH_RUNS
        && choice.may_be_best.len() > 1;
    is_useful.then_some(SUGGESTED)
}

/// Says that the reference has no result, and which of the other settings is the best.
pub fn without_reference(view: &StudyView<'_>, choice: &Choice) -> String {
    let (objective, ties) = (view.criteria.objective, choice.preferred_of.len());
    let best = match ties < 2 {
        true => format!("has the best {objective}"),
        false => format!("is the {}", reason(view, choice)),
    };
    format!(
        "the reference ({}) has no result to compare with; of the settings that ran, {} {best}",
        view.reference_setting(),
        view.setting(choice.candidate),
    )
}

/// Says how certain the recommendation is, if the study added runs to make it certain.
fn certainty_sentence(view: &StudyView<'_>, choice: &Choice) -> String {
    let (Some(_), Some(loss)) = (&view.study.plan.until_sure, choice.expected_loss) else {
        return String::new();
    };
    let runs = view.study.run_count();
    let loss = format!("{:.1} %", 100.0 * loss);
    match is_sure(choice) {
        true => {
            format!(" Certain after {runs} runs: the best setting is expected to be {loss} better.")
        }
        false => format!(
            " Not certain after {runs} runs: the best setting is expected to be {loss} better, and more runs may change the recommendation."
        ),
    }
}

/// Says how likely it is that changing anything gains nothing, if that agrees too little with the recommendation to go
/// without saying.
fn no_gain_sentence(choice: &Choice) -> String {
    /// A recommendation whose opposite has at most this probability stands alone.
    const MAX_DOUBT: f64 = 0.01;
    let is_change = choice.reference_is_as_good() == Some(false);
    let Some(chance) = choice
        .chance_nothing_gains
        .filter(|chance| match is_change {
            true => *chance > MAX_DOUBT,
            false => *chance < 1.0 - MAX_DOUBT,
        })
    else {
        return String::new();
    };
    let mut text = format!(
        " The probability that no setting gains more than {:.1} % is {:.0} %",
        100.0 * NEGLIGIBLE_GAIN,
        100.0 * chance
    );
    if let Some(loss) = choice.expected_loss.filter(|_| !is_change) {
        text += &format!(
            "; the best one is expected to be {:.1} % better",
            100.0 * loss
        );
    }
    text + "."
}

/// Names the settings besides the recommended one that may be the best.
fn ties_sentence(view: &StudyView<'_>, choice: &Choice, recommended: Option<usize>) -> String {
    let ties = choice.may_be_best.iter().copied();
    let ties = ties.filter(|tie| Some(*tie) != recommended);
    let names: Vec<String> = ties.map(|tie| view.setting(tie)).collect();
    match &names[..] {
        [] => String::new(),
        [one] => format!(" {one} may be as good."),
        [first, .., last] if names.len() > 4 && view.varied.len() == 1 => {
            format!(
                " {} others from {first} to {last} may be as good.",
                names.len()
            )
        }
        many if many.len() > 4 => format!(" {} others may be as good.", many.len()),
        [most @ .., last] => format!(" {} and {last} may be as good.", most.join(", ")),
    }
}
