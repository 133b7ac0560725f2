//! What the runs of a study say about an objective: which configurations may be the best, and which are better than
//! the reference. Each statement takes into account that many configurations are compared.

mod draws;
mod line_model;
mod process;
mod run_noise;

pub use line_model::LinePosition;

use sweetspot_stats::Interval;

use crate::{Comparison, Objective, Standing};
use draws::CostDraws;

/// The number of draws, unless there are so many configurations that fewer must do.
const MAX_DRAWS: usize = 1500;
/// The least number of draws.
const MIN_DRAWS: usize = 400;
/// The maximum of the number of draws times the number of configurations.
const MAX_DRAWN_VALUES: usize = 100_000;

/// What the runs say about one objective at every candidate. Each kind of statement (which candidates may be the
/// best, which are better than the reference) holds for all candidates together with 95 % probability.
#[derive(Clone, Debug)]
pub struct Assessment {
    /// For each candidate, its index in the draws; absent if the objective has no value for it.
    rows: Vec<Option<usize>>,
    /// The index of the reference in the draws.
    reference: Option<usize>,
    draws: CostDraws,
    /// The number of runs of the candidate with the fewest runs.
    fewest_runs: usize,
}

/// An estimated share and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The expected relative change: -0.2 means 20 % less.
    pub mean: f64,
    /// The interval that contains the true change with 95 % probability.
    pub interval95: Interval,
}

impl Comparison {
    /// Assesses an objective at all candidates; `None` if it has a positive value for fewer than two of them.
    pub fn assess(&self, objective: Objective) -> Option<Assessment> {
        let log_costs = |values: &[f64]| -> Option<Vec<f64>> {
            let costs: Vec<f64> = values.iter().map(|v| log_cost(objective, *v)).collect();
            (!costs.is_empty() && costs.iter().all(|cost| cost.is_finite())).then_some(costs)
        };
        let mut runs = Vec::new();
        let mut places = Vec::new();
        let mut rows = Vec::with_capacity(self.entries.len());
        for (entry, place) in self.entries.iter().zip(self.places()) {
            let judged = self.judge(entry, objective).ok();
            let costs = judged.and_then(|judged| log_costs(&judged.values));
            rows.push(costs.is_some().then_some(runs.len()));
            if let Some(costs) = costs {
                runs.push(costs);
                places.push(place);
            }
        }
        let mut reference = self.reference_index().and_then(|index| rows[index]);
        if reference.is_none() {
            let judged = self.judge_reference(objective).ok();
            if let Some(costs) = judged.and_then(|judged| log_costs(&judged.values)) {
                let lines = places.iter().map(|place: &LinePosition| place.line + 1);
                let has_order = places.iter().any(|place| place.position.is_some());
                reference = Some(runs.len());
                places.push(LinePosition {
                    line: if has_order {
                        lines.max().unwrap_or(0)
                    } else {
                        0
                    },
                    position: None,
                });
                runs.push(costs);
            }
        }
        if runs.len() < 2 {
            return None;
        }
        let count = (MAX_DRAWN_VALUES / runs.len()).clamp(MIN_DRAWS, MAX_DRAWS);
        let values = line_model::draw_costs(&runs, &places, count);
        Some(Assessment {
            rows,
            reference,
            draws: CostDraws::new(values, runs.len(), reference)?,
            fewest_runs: runs.iter().map(Vec::len).min().unwrap_or(0),
        })
    }
}

/// The natural logarithm of an objective's value as a cost: less is better.
fn log_cost(objective: Objective, value: f64) -> f64 {
    match objective {
        // The gain minus the loss is 2 minus the relative energy minus the relative time.
        Objective::GainMinusLoss => libm::log(2.0 - value),
        _ => objective.direction().as_cost(libm::log(value)),
    }
}

impl Assessment {
    /// The number of runs of the candidate with the fewest runs.
    pub const fn fewest_runs(&self) -> usize {
        self.fewest_runs
    }

    /// Whether a candidate is significantly better or worse than the reference.
    pub fn against_reference(&self, candidate: usize) -> Standing {
        let (Some(own), Some(reference)) = (self.row(candidate), self.reference) else {
            return Standing::Unknown;
        };
        if self.draws.is_better_than_reference(own) {
            Standing::Better
        } else if self.draws.is_worse_alone(own, reference) {
            Standing::Worse
        } else {
            Standing::Same
        }
    }

    /// Whether a candidate is significantly better or worse than another one, if these two alone are compared.
    pub fn against(&self, candidate: usize, other: usize) -> Standing {
        match (self.row(candidate), self.row(other)) {
            (Some(own), Some(other)) if self.draws.is_worse_alone(own, other) => Standing::Worse,
            (Some(own), Some(other)) if self.draws.is_worse_alone(other, own) => Standing::Better,
            (Some(_), Some(_)) => Standing::Same,
            _ => Standing::Unknown,
        }
    }

    /// By how much a candidate is worse than the best of `others`, by their expected costs, as a share.
    pub(crate) fn mean_loss(&self, candidate: usize, others: &[usize]) -> Option<f64> {
        Some(
            self.draws
                .mean_loss(self.row(candidate)?, &self.rows_of(others)),
        )
    }

    /// The candidates among `allowed` that may be the best of them: no other one is significantly better.
    pub fn may_be_best(&self, allowed: &[usize]) -> Vec<usize> {
        let best = self.draws.may_be_best(&self.rows_of(allowed));
        let is_best = |candidate: &&usize| {
            let row = self.row(**candidate);
            row.is_some_and(|row| best.contains(&row))
        };
        allowed.iter().filter(is_best).copied().collect()
    }

    /// The relative change of the cost from the reference to a candidate; `None` if one of them has no value.
    pub fn change(&self, candidate: usize) -> Option<Change> {
        let differences = self
            .draws
            .sorted_differences(self.row(candidate)?, self.reference?);
        let at = |share: f64| {
            libm::expm1(differences[(share * (differences.len() - 1) as f64) as usize])
        };
        let changes = differences
            .iter()
            .map(|difference| libm::expm1(*difference));
        Some(Change {
            mean: changes.sum::<f64>() / differences.len() as f64,
            interval95: Interval {
                low: at(0.025),
                high: at(0.975),
            },
        })
    }

    /// The expected loss if the reference is used instead of the truly best of `allowed`, as a share.
    pub fn expected_loss_of_reference(&self, allowed: &[usize]) -> Option<f64> {
        Some(
            self.draws
                .expected_loss(self.reference?, &self.rows_of(allowed)),
        )
    }

    /// The interval of the difference between the reference and a candidate in the unit of the objective, positive if
    /// the candidate is better. It contains the differences of all candidates with 95 % probability.
    pub(crate) fn margin_interval(
        &self,
        candidate: usize,
        objective: Objective,
        of_reference: f64,
    ) -> Option<Interval> {
        let (mean, half) = self.draws.gain_interval(self.row(candidate)?)?;
        let by = |difference: f64| match objective {
            Objective::GainMinusLoss => -(2.0 - of_reference) * libm::expm1(-difference),
            _ if objective.is_maximised() => of_reference * libm::expm1(difference),
            _ => -of_reference * libm::expm1(-difference),
        };
        Some(Interval {
            low: by(mean - half),
            high: by(mean + half),
        })
    }

    /// The probability that a candidate is not better than the reference.
    pub fn chance_of_no_gain(&self, candidate: usize) -> Option<f64> {
        let differences = self
            .draws
            .sorted_differences(self.row(candidate)?, self.reference?);
        let worse = differences.iter().filter(|difference| **difference >= 0.0);
        Some(worse.count() as f64 / differences.len() as f64)
    }

    /// The probability that no candidate of `allowed` is better than the reference by more than
    /// [`NEGLIGIBLE_GAIN`](crate::NEGLIGIBLE_GAIN).
    pub fn chance_nothing_gains(&self, allowed: &[usize]) -> Option<f64> {
        let (reference, others) = (self.reference?, self.rows_of(allowed));
        let draws = &self.draws;
        Some(draws.share_none_better(reference, &others, crate::NEGLIGIBLE_GAIN))
    }

    /// The expected loss if a candidate is used instead of the truly best of `allowed`, as a share.
    pub fn expected_loss(&self, candidate: usize, allowed: &[usize]) -> Option<f64> {
        Some(
            self.draws
                .expected_loss(self.row(candidate)?, &self.rows_of(allowed)),
        )
    }

    /// The index of a candidate in the draws.
    fn row(&self, candidate: usize) -> Option<usize> {
        self.rows.get(candidate).copied().flatten()
    }

    /// The indices of candidates in the draws.
    fn rows_of(&self, candidates: &[usize]) -> Vec<usize> {
        let candidates = candidates.iter();
        candidates
            .filter_map(|candidate| self.row(*candidate))
            .collect()
    }
}
