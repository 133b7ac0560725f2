//! Values with their confidence intervals, and the differences between them.

use sweetspot_quantity::Ratio;
use sweetspot_stats::{Difference, Interval};

use crate::Objective;

/// The value of an objective over several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value at the mean time and energy.
    pub value: f64,
    /// The 95 % confidence interval; unknown for a single run.
    pub interval95: Option<Interval>,
    /// The number of runs that have a value.
    pub runs: usize,
}

/// The result of comparing a configuration with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is significantly better.
    Better,
    /// There is no significant difference.
    Same,
    /// It is significantly worse.
    Worse,
    /// The significance is unknown because one of them has a single run.
    Unknown,
}

/// By how much a configuration is better than another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// The difference in the unit of the objective; negative where it is worse.
    pub by: f64,
    /// The 95 % confidence interval (Welch); unknown where one of them has a single run.
    pub interval95: Option<Interval>,
    /// The difference as a share of the other's value; none where that has no scale.
    pub relative: Option<Ratio>,
    /// Whether the difference is significant.
    pub standing: Standing,
}

/// A candidate's value and the values of its runs.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) estimate: Estimate,
    pub(crate) values: Vec<f64>,
}

impl Judged {
    /// Returns by how much the candidate is better than another.
    pub(crate) fn margin(&self, other: &Self, objective: Objective) -> Margin {
        let (own, others) = (self.estimate.value, other.estimate.value);
        let as_cost = |value: f64| objective.direction().as_cost(value);
        let by = match objective.is_same(own, others) {
            true => 0.0,
            false => as_cost(others) - as_cost(own),
        };
        let values = |judged: &Self| -> Vec<f64> {
            let values = judged.values.iter();
            values.map(|value| as_cost(*value)).collect()
        };
        let difference = Difference::of(&values(other), &values(self));
        let standing = match difference.and_then(|difference| difference.is_significant()) {
            None => Standing::Unknown,
            Some(true) if by > 0.0 => Standing::Better,
            Some(true) if by < 0.0 => Standing::Worse,
            Some(_) => Standing::Same,
        };
        let relative = by / others.abs();
        let has_scale = relative.is_finite() && objective != Objective::GainMinusLoss;
        let interval95 = difference
            .and_then(|difference| Some(shifted(difference.interval95?, by - difference.mean)));
        Margin {
            by,
            interval95,
            relative: has_scale.then_some(Ratio::new(relative)),
            standing,
        }
    }
}

pub(crate) fn shifted(interval: Interval, by: f64) -> Interval {
    Interval {
        low: interval.low + by,
        high: interval.high + by,
    }
}
