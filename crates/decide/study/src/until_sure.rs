//! Studies that add runs where they change the recommendation, until it is certain.

use serde::{Deserialize, Serialize};
use sweetspot_decide::{Choice, Comparison, Criteria, Limit, Objective, Preference, Tariff};
use sweetspot_quantity::Ratio;

use crate::places::places;
use crate::{Definition, Plan, Point, PrecisionTarget, text_field};

/// When a study needs no more runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Until {
    /// When the 95 % intervals of time and energy of every configuration are within this share of the mean.
    Precision(Ratio),
    /// When the recommendation is certain.
    Certainty(Certainty),
}

/// The word for a certain recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// The expected loss and the chance of no gain are small.
    Sure,
}

/// The recommendation that a study makes certain by more runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertaintyTarget {
    /// The objective of the recommendation.
    #[serde(with = "text_field::required")]
    pub objective: Objective,
    /// Which of the settings that may be best is recommended. Studies of earlier versions, which do not say, take the
    /// fastest.
    #[serde(default, with = "text_field::required")]
    pub prefer: Preference,
    /// The limits that the recommendation must meet.
    #[serde(default, with = "text_field::list")]
    pub limits: Vec<Limit>,
    /// The maximum number of runs of a configuration, even if the recommendation is not certain.
    pub max_runs: u32,
}

/// The least number of runs of each configuration before runs are added to some of them.
pub(crate) const MIN_RUNS: u32 = 3;
/// A recommendation is certain if its expected loss against the truly best configuration is below this share.
pub const SURE_LOSS: f64 = 0.005;
/// A recommended change is certain if the probability that it gains nothing is below this.
pub const SURE_CHANCE: f64 = 0.05;

/// Whether a choice is certain enough that no more runs are needed.
pub fn is_sure(choice: &Choice) -> bool {
    let is_change = choice.reference_is_as_good() == Some(false);
    let chance = choice.chance_of_no_gain.filter(|_| is_change);
    choice.expected_loss.is_some_and(|loss| loss < SURE_LOSS)
        && chance.is_none_or(|chance| chance < SURE_CHANCE)
}

impl CertaintyTarget {
    /// The number of runs that each configuration needs, given the runs so far: one more of each configuration that may
    /// be the best, and of the reference, while the recommendation is not certain.
    pub(crate) fn runs_needed(&self, plan: &Plan, points: &[Point]) -> Vec<u32> {
        let least = plan.repeat.max(MIN_RUNS);
        let runs = |point: &Point| point.runs.len() as u32;
        let is_short = |point: &Point| point.failure().is_none() && runs(point) < least;
        if points.iter().any(is_short) {
            return points.iter().map(|point| runs(point).max(least)).collect();
        }
        let mut needed: Vec<u32> = points.iter().map(runs).collect();
        let Some(choice) = self.choice(plan, points).filter(|choice| !is_sure(choice)) else {
            return needed;
        };
        let wanted = choice
            .may_be_best
            .iter()
            .copied()
            .chain([choice.candidate, plan.reference]);
        let most = wanted.collect::<std::collections::BTreeSet<usize>>();
        for point in most {
            if runs(&points[point]) < self.max_runs {
                needed[point] = runs(&points[point]) + 1;
            }
        }
        needed
    }

    /// The choice after the runs so far; `None` if there is none.
    fn choice(&self, plan: &Plan, points: &[Point]) -> Option<Choice> {
        let on_axes = &points[..plan.on_axes];
        let candidates: Vec<_> = on_axes.iter().map(Point::candidate).collect();
        let reference = points[plan.reference].candidate();
        let criteria = Criteria {
            objective: self.objective,
            limits: self.limits.clone(),
            tariff: Tariff::NONE,
            preference: self.prefer,
        };
        Comparison::new(&candidates, Some(&reference), Tariff::NONE)
            .with_places(places(on_axes, &plan.axes))
            .recommend(&criteria, None)
            .ok()
    }
}

impl Definition {
    /// The precision at which a configuration needs no more runs; `None` if the user gave none.
    pub fn precision_target(&self) -> Option<PrecisionTarget> {
        match self.until? {
            Until::Precision(half_width) => Some(PrecisionTarget {
                half_width,
                max_runs: self.max_repeats(),
            }),
            Until::Certainty(_) => None,
        }
    }

    /// The recommendation that more runs are to make certain; `None` if the user did not ask for that.
    pub fn certainty_target(&self) -> Option<CertaintyTarget> {
        match self.until? {
            Until::Precision(_) => None,
            Until::Certainty(Certainty::Sure) => Some(CertaintyTarget {
                objective: self.objective.unwrap_or(Objective::Edp),
                prefer: self.prefer.unwrap_or_default(),
                limits: self.limit.clone().unwrap_or_default(),
                max_runs: self.max_repeats(),
            }),
        }
    }

    /// The most runs that a configuration can get.
    pub fn most_repeats(&self) -> u32 {
        match self.until {
            Some(_) => self.max_repeats(),
            None => self.repeat(),
        }
    }

    /// The maximum number of runs of a configuration, if `until` adds runs.
    fn max_repeats(&self) -> u32 {
        /// The maximum if the user gave none.
        const DEFAULT: u32 = 30;
        self.at_most.unwrap_or(DEFAULT).max(self.repeat())
    }
}
