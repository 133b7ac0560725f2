//! The objective at every recorded point of a curve.

use sweetspot_decide::{Candidate, Comparison, Criteria, Objective, Outcome};

use super::{RecordedCurve, ReplayError};

/// The objective at every recorded point, and the best of them.
pub struct RecordedValues {
    objective: Objective,
    /// The objective at each point, as a number to be minimised; `None` if the point breaks a limit.
    pub values: Vec<Option<f64>>,
    /// The index of the best point; `None` if every point breaks a limit.
    pub optimum: Option<usize>,
}

impl RecordedValues {
    /// Computes the objective at every point of a curve.
    pub fn new(curve: &RecordedCurve, criteria: &Criteria) -> Result<Self, ReplayError> {
        let candidates: Vec<Candidate> = curve
            .records
            .iter()
            .map(|runs| Candidate::of(runs.clone()))
            .collect();
        let reference = &candidates[curve.space.reference()];
        let comparison = Comparison::new(&candidates, Some(reference), criteria.tariff.clone());
        let mut values = Vec::new();
        for index in 0..candidates.len() {
            let value = comparison.estimate(index, criteria.objective);
            let value = value.map_err(|reason| ReplayError::NoValue {
                curve: curve.name(),
                objective: criteria.objective.to_string(),
                reason: reason.to_string(),
            })?;
            let keeps_limits = |mean: &Outcome| {
                let mut limits = criteria.limits.iter();
                limits.all(|limit| limit.check(mean, comparison.basis()).is_ok())
            };
            let sign = if criteria.objective.is_maximised() {
                -1.0
            } else {
                1.0
            };
            let kept = comparison.mean(index).is_some_and(keeps_limits);
            values.push(kept.then_some(sign * value.value));
        }
        let best = values
            .iter()
            .enumerate()
            .filter_map(|(index, value)| Some((index, (*value)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        Ok(Self {
            objective: criteria.objective,
            optimum: best.map(|(index, _)| index),
            values,
        })
    }

    /// Whether all points have the same value.
    pub fn all_equal(&self) -> bool {
        let values: Option<Vec<f64>> = self.values.iter().copied().collect();
        values.is_some_and(|values| {
            let same = |value: &f64| (value - values[0]).abs() <= 1e-9 * values[0].abs();
            values.len() > 1 && values.iter().all(same)
        })
    }

    /// How much worse a choice is than the optimum, as a share of the optimum's value.
    pub fn regret(&self, choice: Option<usize>) -> Option<f64> {
        let (chosen, best) = (self.values[choice?]?, self.values[self.optimum?]?);
        let size = match self.objective {
            // A difference of shares may be near 0, and it is a share itself.
            Objective::GainMinusLoss => 1.0,
            _ => best.abs(),
        };
        Some((chosen - best) / size)
    }
}
