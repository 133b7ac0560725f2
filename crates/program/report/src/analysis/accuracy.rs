//! The recommendation with and without regard to accuracy, as in section 8.6 of multi_gpu_2018.

use sweetspot_decide::{Criteria, Limit};
use sweetspot_study::Study;

use crate::analysis::choices::set_instruction;
use crate::analysis::view::StudyView;

/// Settings whose accuracy is within this many percentage points of the best are considered as good, if the user gives
/// no limit.
const ACCURACY_MARGIN: f64 = 0.05;

/// The recommended settings with and without regard to accuracy.
pub struct AccuracyChoice {
    /// The name of the value that is an accuracy.
    pub value: String,
    /// The index of the recommended point without regard to accuracy; `None` if there is none.
    pub without: Option<usize>,
    /// The index of the recommended point with regard to accuracy; `None` if there is none.
    pub with: Option<usize>,
    /// The indices of the points whose accuracy is unknown.
    pub unknown: Vec<usize>,
    /// The explanation in a sentence or two.
    pub text: String,
}

impl AccuracyChoice {
    /// Compares the recommendations with and without accuracy; `None` if no point has an accuracy.
    pub fn new(study: &Study, criteria: &Criteria) -> Option<Self> {
        let names = study
            .points
            .iter()
            .flat_map(|point| point.values().into_keys());
        let value = names.filter(|name| is_accuracy(name)).min()?;
        let of = |index: usize| study.points[index].values().get(&value).map(|one| one.mean);
        let known: Vec<(usize, f64)> = (0..study.points.len())
            .filter_map(|index| Some((index, of(index)?)))
            .collect();
        let (best_index, best) =
            known
                .iter()
                .copied()
                .reduce(|best, one| match one.1 > best.1 {
                    true => one,
                    false => best,
                })?;
        // A value above 1 is a percentage.
        let unit = if best > 1.0 { 100.0 } else { 1.0 };
        let is_about_accuracy = |limit: &&Limit| limit.to_string().starts_with(&value);
        let (own, others): (Vec<&Limit>, Vec<&Limit>) =
            criteria.limits.iter().partition(is_about_accuracy);
        let others: Vec<Limit> = others.into_iter().cloned().collect();
        let margin: Limit = format!("{value}>={}", best - ACCURACY_MARGIN * unit)
            .parse()
            .ok()?;
        let with = match own.is_empty() {
            true => [others.clone(), vec![margin]].concat(),
            false => criteria.limits.clone(),
        };
        let choose = |limits: Vec<Limit>| {
            let criteria = Criteria {
                limits,
                ..criteria.clone()
            };
            let view = StudyView::new(study, &criteria);
            let choice = view.choice.as_ref().ok()?;
            let index = match view.keeps_reference() {
                true => view.reference_index().unwrap_or(choice.candidate),
                false => choice.candidate,
            };
            Some(index)
        };
        let view = StudyView::new(study, criteria);
        let (without, with) = (choose(others), choose(with));
        let percent = |value: f64| format!("{:.1} %", 100.0 * value / unit);
        let setting = |index: usize| view.setting(index);
        let with_accuracy = |index: usize| {
            let accuracy = of(index).map_or("unknown".to_owned(), percent);
            format!(
                "{} (accuracy {accuracy})",
                set_instruction(&view.varied, &study.points[index])
            )
        };
        let condition = match own.as_slice() {
            [] => format!(
                "accuracy within {:.0} points of the best ({} at {})",
                100.0 * ACCURACY_MARGIN,
                percent(best),
                setting(best_index)
            ),
            limits => limits
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        };
        let mut text = match (without, with) {
            (Some(without), Some(with)) if without == with => format!(
                "Accuracy: {} is also the best choice with {condition}: it has {}.",
                setting(with),
                of(with).map_or("an unknown accuracy".to_owned(), percent)
            ),
            (Some(without), Some(with)) => {
                let cost = view.change_between(with, without);
                let cost = cost.map_or(String::new(), |cost| format!(": {cost}"));
                format!(
                    "Accuracy: without regard to it, {}; with {condition}, {}{cost}.",
                    with_accuracy(without),
                    with_accuracy(with)
                )
            }
            (Some(without), None) => format!(
                "Accuracy: without regard to it, {}; no setting has {condition}.",
                with_accuracy(without)
            ),
            (None, _) => return None,
        };
        let unknown: Vec<usize> = (0..study.points.len())
            .filter(|index| study.points[*index].outcome().is_some() && of(*index).is_none())
            .collect();
        if let Some(first) = unknown.first() {
            text += &format!(
                " The accuracy of {} of {} settings is unknown (such as {}): they are not chosen with regard to it.",
                unknown.len(),
                study.points.len(),
                setting(*first)
            );
        }
        Some(Self {
            value,
            without,
            with,
            unknown,
            text,
        })
    }
}

/// Whether a value with this name is an accuracy.
fn is_accuracy(name: &str) -> bool {
    name.to_lowercase().starts_with("accuracy")
}
