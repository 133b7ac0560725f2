//! Studies in which a search strategy chooses the configurations to run.

use serde::{Deserialize, Serialize};
use sweetspot_decide::search::{
    EarlierResults, Evaluation, KnobKind, Prior, Proposal, Recommendation, SearchOptions,
    SearchSpace, SearchSpaceError, StopReason, Strategy, StrategyName,
};
use sweetspot_decide::{Criteria, Limit, Objective, Outcome, Preference, Tariff};
use sweetspot_quantity::{Joules, Seconds};

use crate::{Axis, BATCH_PARAMETER, Configuration, Plan, Point, Status, Study, Task, text_field};

/// The search that chooses which configurations of a study are run: its strategy, criteria and earlier results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudySearch {
    /// The strategy that chooses the next run.
    #[serde(with = "text_field::required")]
    pub strategy: StrategyName,
    /// The objective that the strategy optimises.
    #[serde(with = "text_field::required")]
    pub objective: Objective,
    /// The limits that the recommendation must meet.
    #[serde(default, with = "text_field::list")]
    pub limits: Vec<Limit>,
    /// The maximum number of runs; absent if the user gave none.
    #[serde(default, rename = "most")]
    pub run_limit: Option<u32>,
    /// The results of earlier studies that the strategy learns from.
    #[serde(default, rename = "earlier")]
    pub prior: Vec<PriorResults>,
}

/// The results of an earlier study that a search learns from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorResults {
    /// The name of the earlier study.
    pub name: String,
    /// One row for each point: a coordinate for each knob, then the time in seconds and the energy in joules.
    pub rows: Vec<Vec<f64>>,
    /// The index of the row that the others are compared with.
    pub reference: usize,
    /// The number of GPUs that each run used.
    pub gpus: u64,
}

/// The progress of a study's search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchProgress {
    /// The number of runs so far, failed ones included.
    pub evaluations: usize,
    /// The point that the search recommends; absent before a run has succeeded.
    pub recommendation: Option<Recommendation>,
    /// Why the search stopped; absent while it continues.
    pub stop_reason: Option<StopReason>,
}

/// Why a search cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SearchError(String);

/// The maximum number of runs of a guided search, including the last run, which is that of its recommendation.
const MAX_GUIDED_RUNS: usize = 16;
/// The usual number of runs of a guided search: the median of 144 searches for energy, EDP and EDS on the published
/// curves and on those of an H200, of which nine in ten ended within 10 runs.
const TYPICAL_GUIDED_RUNS: usize = 6;
/// The maximum number of points that a search takes from an earlier study; more would add little information.
const MAX_PRIOR_POINTS: usize = 8;

impl StudySearch {
    /// Checks that the search can start on a plan.
    pub fn check(&self, plan: &Plan) -> Result<(), SearchError> {
        self.start(plan).map(|_| ())
    }

    /// The maximum number of runs of the search.
    pub(crate) fn max_runs(&self, plan: &Plan) -> usize {
        let all = plan
            .configurations
            .len()
            .saturating_mul(plan.repeat as usize);
        let own = match self.strategy {
            StrategyName::Guided => MAX_GUIDED_RUNS,
            _ => all,
        };
        self.run_limit.map_or(own, |limit| own.min(limit as usize))
    }

    /// The usual number of runs of the search; `None` if it depends too much on the curves.
    pub(crate) fn typical_runs(&self, plan: &Plan) -> Option<usize> {
        match self.strategy {
            StrategyName::Guided => Some(TYPICAL_GUIDED_RUNS.min(self.max_runs(plan))),
            StrategyName::Exhaustive => Some(self.max_runs(plan)),
            StrategyName::Golden | StrategyName::Linear => None,
        }
    }

    /// The next run to make; `None` if the search has stopped and its recommendation was run.
    pub(crate) fn next(&self, plan: &Plan, points: &[Point]) -> Option<Task> {
        let (mut strategy, _) = self.replay_runs(plan, points)?;
        let wanted = match strategy.ask() {
            Proposal::Evaluate(point) => point,
            Proposal::Stop(_) => {
                let point = strategy.recommend()?.point;
                let runs: usize = points.iter().map(|point| point.runs.len()).sum();
                let is_due = points[point].runs.is_empty() && runs < self.max_runs(plan);
                is_due.then_some(point)?
            }
        };
        let used = |repeat: &u32| {
            let runs = &points[wanted].runs;
            runs.iter().any(|run| run.task.repeat == *repeat)
        };
        let repeat = (0..plan.max_repeats()).find(|repeat| !used(repeat))?;
        Some(Task {
            configuration: wanted,
            repeat,
        })
    }

    /// The progress of the search after these runs.
    pub(crate) fn progress(&self, plan: &Plan, points: &[Point]) -> Option<SearchProgress> {
        let (mut strategy, runs) = self.replay_runs(plan, points)?;
        let failed = points.iter().filter(|point| point.failure().is_some());
        Some(SearchProgress {
            evaluations: runs + failed.count(),
            recommendation: strategy.recommend().filter(|_| runs > 0),
            stop_reason: match strategy.ask() {
                Proposal::Stop(reason) => Some(reason),
                Proposal::Evaluate(_) => None,
            },
        })
    }

    /// The objective and the limits of the search.
    pub fn criteria(&self) -> Criteria {
        Criteria {
            objective: self.objective,
            limits: self.limits.clone(),
            tariff: Tariff::NONE,
            preference: Preference::default(),
        }
    }

    /// Starts the strategy and gives it the results of every run; also returns the number of successful runs.
    fn replay_runs(&self, plan: &Plan, points: &[Point]) -> Option<(Box<dyn Strategy>, usize)> {
        let mut strategy = self.start(plan).ok()?;
        let mut runs = 0;
        let too_large: Vec<&Configuration> = points
            .iter()
            .filter(|point| point.status() == Status::OutOfMemory)
            .map(|point| &point.configuration)
            .collect();
        for (index, point) in points.iter().enumerate() {
            let candidate = point.candidate();
            if candidate.failed.is_some() {
                strategy.tell(index, Evaluation::Failed);
                continue;
            }
            if point.runs.is_empty() && needs_as_much_memory(&point.configuration, &too_large) {
                strategy.tell(index, Evaluation::Impossible);
                continue;
            }
            for run in candidate.runs {
                strategy.tell(index, Evaluation::measured(run));
                runs += 1;
            }
        }
        Some((strategy, runs))
    }

    /// Starts the strategy on the search space of a plan.
    fn start(&self, plan: &Plan) -> Result<Box<dyn Strategy>, SearchError> {
        let (name, objective) = (self.strategy, self.objective);
        if matches!(objective, Objective::Cost | Objective::Carbon) {
            return Err(SearchError(format!(
                "a strategy cannot search for {objective}, because prices may change later: use the objective energy or eds:K, or no strategy"
            )));
        }
        let (knobs, space) = search_space(plan)?;
        let prior = self.prior.iter();
        let prior: Vec<EarlierResults> =
            prior.filter_map(PriorResults::to_earlier_results).collect();
        let options = SearchOptions {
            repeats: plan.repeat as usize,
            max_evaluations: match name {
                // The last run is that of the recommendation.
                StrategyName::Guided => self.max_runs(plan).saturating_sub(1).max(1),
                _ => self.run_limit.map_or(usize::MAX, |limit| limit as usize),
            },
            seed: plan.seed,
            prior: match name {
                StrategyName::Guided => Prior::learn(&knobs, &prior),
                _ => Prior::default(),
            },
            ..SearchOptions::default()
        };
        Ok(name.start(space, &self.criteria(), options))
    }
}

/// Whether a configuration needs at least as much memory as one of those in `too_large`, which ran out of memory: the
/// same work with at least the same batch size, whatever the GPU settings.
fn needs_as_much_memory(own: &Configuration, too_large: &[&Configuration]) -> bool {
    let work = |configuration: &Configuration| {
        let mut parameters = configuration.parameters.clone();
        parameters.remove(BATCH_PARAMETER);
        (configuration.gpus, parameters)
    };
    let as_large = |other: &Configuration| match (own.batch(), other.batch()) {
        (Some(own), Some(other)) => own >= other,
        (own, other) => own == other,
    };
    let mut others = too_large.iter();
    others.any(|other| as_large(other) && work(own) == work(other))
}

/// The search space in which each configuration of a plan is a point.
fn search_space(plan: &Plan) -> Result<(Vec<KnobKind>, SearchSpace), SearchError> {
    let mut knobs: Vec<KnobKind> = plan.axes.iter().map(Axis::knob_kind).collect();
    let mut points: Vec<Vec<f64>> = plan
        .configurations
        .iter()
        .map(|configuration| coordinates(plan, configuration))
        .collect();
    let space = match SearchSpace::new(knobs.clone(), points.clone(), plan.reference) {
        // The reference differs from a configuration only in something that is not an axis.
        Err(SearchSpaceError::Duplicate(_)) => {
            for (index, point) in points.iter_mut().enumerate() {
                point.push(f64::from(u8::from(index == plan.reference)));
            }
            knobs.push(KnobKind::Level);
            SearchSpace::new(knobs.clone(), points, plan.reference)
        }
        space => space,
    };
    let space = space.map_err(|error| SearchError(error.to_string()))?;
    Ok((knobs, space))
}

/// The values of a configuration on the axes of a plan, as numbers.
fn coordinates(plan: &Plan, configuration: &Configuration) -> Vec<f64> {
    let value = |axis: &Axis| {
        axis.number(configuration).unwrap_or_else(|| {
            // A value that is not a number is replaced by its position among the axis's values.
            let text = axis.text(configuration);
            let mut texts = plan.configurations.iter().map(|other| axis.text(other));
            texts.position(|other| other == text).unwrap_or(0) as f64 + 1.0
        })
    };
    plan.axes.iter().map(value).collect()
}

impl PriorResults {
    /// Extracts the results of a study over the same axes; `None` if fewer than two points have time and energy.
    pub fn from_study(study: &Study, axes: &[Axis]) -> Option<Self> {
        if study.plan.axes != axes || axes.is_empty() {
            return None;
        }
        let row = |point: &Point| {
            let outcome = point.outcome()?;
            let mut row: Vec<f64> = axes
                .iter()
                .map(|axis| axis.number(&point.configuration))
                .collect::<Option<_>>()?;
            row.push(outcome.time.get());
            row.push(outcome.energy?.get());
            Some(row)
        };
        let reference = row(&study.reference)?;
        let others: Vec<Vec<f64>> = study.points.iter().filter_map(row).collect();
        let stride = others.len().div_ceil(MAX_PRIOR_POINTS).max(1);
        let mut rows = vec![reference.clone()];
        rows.extend(
            others
                .into_iter()
                .step_by(stride)
                .filter(|row| row[..axes.len()] != reference[..axes.len()]),
        );
        (rows.len() > 1).then(|| Self {
            name: study.name(),
            rows,
            reference: 0,
            gpus: study.reference.configuration.gpus,
        })
    }

    /// Converts the rows to the form that strategies learn from; `None` if a row is invalid.
    fn to_earlier_results(&self) -> Option<EarlierResults> {
        let mut points = Vec::new();
        let mut outcomes = Vec::new();
        for row in &self.rows {
            let [point @ .., time, energy] = row.as_slice() else {
                return None;
            };
            points.push(point.to_vec());
            outcomes.push(Outcome {
                gpus: self.gpus,
                ..Outcome::new(Seconds::new(*time), Joules::new(*energy))
            });
        }
        Some(EarlierResults {
            points,
            outcomes,
            reference: self.reference,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_at_least_as_large_as_one_that_ran_out_of_memory_is_skipped() {
        let of = |batch: u64, gpus: u64| {
            let one = Configuration {
                gpus,
                ..Configuration::default()
            };
            one.with_batch(batch)
        };
        let failed = of(128, 1);
        let is_out = |own: &Configuration| needs_as_much_memory(own, &[&failed]);
        assert!(is_out(&of(128, 1)) && is_out(&of(256, 1)));
        assert!(!is_out(&of(64, 1)) && !is_out(&of(128, 2)));
        assert!(!needs_as_much_memory(&of(128, 1), &[]));
    }
}
