//! Values with their confidence intervals, and the differences between them.

use sweetspot_quantity::Ratio;
use sweetspot_stats::Interval;

use crate::Objective;

/// A configuration's value of an objective, estimated from its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The objective's value for the mean time and the mean energy of the runs.
    pub value: f64,
    /// The 95 % confidence interval of the value; absent for a single run.
    pub interval95: Option<Interval>,
    /// The number of runs for which the objective has a value.
    pub runs: usize,
}

/// Whether the first of two compared configurations is better than the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The first configuration is significantly better than the second.
    Better,
    /// The two configurations do not differ significantly.
    Same,
    /// The first configuration is significantly worse than the second.
    Worse,
    /// The significance cannot be tested, because one of the two configurations has a single run.
    Unknown,
}

/// By how much the first of two configurations is better than the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// The difference in the unit of the objective; negative if the first configuration is worse.
    pub by: f64,
    /// The interval that contains the differences of all configurations from the reference with 95 % probability;
    /// absent if the second configuration is not the reference, or without a statistical model.
    pub interval95: Option<Interval>,
    /// The difference as a share of the second configuration's value; absent if that value is zero, and for
    /// `gain-minus-loss`, which is a share already.
    pub relative: Option<Ratio>,
    /// Whether the first configuration is significantly better or worse.
    pub standing: Standing,
}

/// A candidate's value of the objective, and the value of each of its runs.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) estimate: Estimate,
    pub(crate) values: Vec<f64>,
}

impl Judged {
    /// Returns by how much the candidate is better than another. `standing` says whether the difference is significant;
    /// without it, that is unknown.
    pub(crate) fn margin(
        &self,
        other: &Self,
        objective: Objective,
        standing: Option<Standing>,
    ) -> Margin {
        let (own, others) = (self.estimate.value, other.estimate.value);
        let as_cost = |value: f64| objective.direction().as_cost(value);
        let by = match objective.is_same(own, others) {
            true => 0.0,
            false => as_cost(others) - as_cost(own),
        };
        let relative = by / others.abs();
        let has_scale = relative.is_finite() && objective != Objective::GainMinusLoss;
        Margin {
            by,
            interval95: None,
            relative: has_scale.then_some(Ratio::new(relative)),
            standing: standing.unwrap_or(Standing::Unknown),
        }
    }
}
