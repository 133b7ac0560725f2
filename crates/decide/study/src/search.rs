//! A study that is not made whole: a strategy says which configuration is worth a run.

use serde::{Deserialize, Serialize};
use sweetspot_decide::search::{
    EarlierResults, Evaluation, KnobKind, Prior, Proposal, Recommendation, SearchOptions,
    SearchSpace, SearchSpaceError, StopReason, Strategy, StrategyName,
};
use sweetspot_decide::{Criteria, Limit, Objective, Outcome, Tariff};
use sweetspot_quantity::{Joules, Seconds};

use crate::{Axis, BATCH, Configuration, Plan, Point, Status, Study, Task, text_field};

/// Which strategy decides what is run next, and for what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The strategy.
    #[serde(with = "text_field::required")]
    pub strategy: StrategyName,
    /// What it minimises.
    #[serde(with = "text_field::required")]
    pub objective: Objective,
    /// The limits that its choice must keep.
    #[serde(default, with = "text_field::list")]
    pub limits: Vec<Limit>,
    /// No more runs than this.
    #[serde(default)]
    pub most: Option<u32>,
    /// What earlier studies found.
    #[serde(default)]
    pub earlier: Vec<EarlierStudy>,
}

/// What an earlier study found, as far as it can teach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierStudy {
    /// For people.
    pub name: String,
    /// A coordinate for each knob, then time in seconds and energy in joules.
    pub rows: Vec<Vec<f64>>,
    /// The row that the others are compared with.
    pub reference: usize,
    /// GPUs of a run.
    pub gpus: u64,
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Searched {
    /// Runs that were made for it.
    pub evaluations: usize,
    /// What it holds for the best, where anything was run well.
    pub answer: Option<Recommendation>,
    /// Why it is over, where it is.
    pub done: Option<StopReason>,
}

/// A search that cannot be begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SearchError(String);

/// A guided search of a study makes no more runs, that of its answer included.
const GUIDED: usize = 16;
/// More places of an earlier study teach little more.
const PLACES: usize = 8;

impl Search {
    /// Whether it can be begun on a plan.
    pub fn check(&self, plan: &Plan) -> Result<(), SearchError> {
        self.start(plan).map(|_| ())
    }

    /// Runs at most.
    pub(crate) fn at_most(&self, plan: &Plan) -> usize {
        let all = plan
            .configurations
            .len()
            .saturating_mul(plan.repeat as usize);
        let own = match self.strategy {
            StrategyName::Guided => GUIDED,
            _ => all,
        };
        self.most.map_or(own, |most| own.min(most as usize))
    }

    /// What is to be run next: one run, or none where the search is over and its answer was run.
    pub(crate) fn next(&self, plan: &Plan, points: &[Point]) -> Option<Task> {
        let (mut strategy, _) = self.told(plan, points)?;
        let wanted = match strategy.ask() {
            Proposal::Evaluate(place) => place,
            Proposal::Stop(_) => {
                let place = strategy.recommend()?.point;
                let runs: usize = points.iter().map(|point| point.runs.len()).sum();
                let is_due = points[place].runs.is_empty() && runs < self.at_most(plan);
                is_due.then_some(place)?
            }
        };
        let used = |repeat: &u32| {
            let runs = &points[wanted].runs;
            runs.iter().any(|run| run.task.repeat == *repeat)
        };
        let repeat = (0..plan.most()).find(|repeat| !used(repeat))?;
        Some(Task {
            configuration: wanted,
            repeat,
        })
    }

    /// How far it has come.
    pub(crate) fn standing(&self, plan: &Plan, points: &[Point]) -> Option<Searched> {
        let (mut strategy, runs) = self.told(plan, points)?;
        let failed = points.iter().filter(|point| point.failure().is_some());
        Some(Searched {
            evaluations: runs + failed.count(),
            answer: strategy.recommend().filter(|_| runs > 0),
            done: match strategy.ask() {
                Proposal::Stop(done) => Some(done),
                Proposal::Evaluate(_) => None,
            },
        })
    }

    /// What it looks for.
    pub fn question(&self) -> Criteria {
        Criteria {
            objective: self.objective,
            limits: self.limits.clone(),
            tariff: Tariff::NONE,
        }
    }

    fn told(&self, plan: &Plan, points: &[Point]) -> Option<(Box<dyn Strategy>, usize)> {
        let mut strategy = self.start(plan).ok()?;
        let mut runs = 0;
        let too_large: Vec<&Configuration> = points
            .iter()
            .filter(|point| point.status() == Status::OutOfMemory)
            .map(|point| &point.configuration)
            .collect();
        for (place, point) in points.iter().enumerate() {
            let candidate = point.candidate();
            if candidate.failed.is_some() {
                strategy.tell(place, Evaluation::Failed);
                continue;
            }
            if point.runs.is_empty() && is_as_large(&point.configuration, &too_large) {
                strategy.tell(place, Evaluation::Impossible);
                continue;
            }
            for run in candidate.runs {
                strategy.tell(place, Evaluation::measured(run));
                runs += 1;
            }
        }
        Some((strategy, runs))
    }

    fn start(&self, plan: &Plan) -> Result<Box<dyn Strategy>, SearchError> {
        let (name, objective) = (self.strategy, self.objective);
        if matches!(objective, Objective::Cost | Objective::Carbon) {
            return Err(SearchError(format!(
                "a strategy does not search for {objective}, for its prices may change later: make the study for energy or eds:K, or without a strategy"
            )));
        }
        let (knobs, space) = space(plan)?;
        let earlier: Vec<EarlierResults> = self
            .earlier
            .iter()
            .filter_map(EarlierStudy::lesson)
            .collect();
        let terms = SearchOptions {
            repeats: plan.repeat as usize,
            max_evaluations: match name {
                // One is left for a run of its answer.
                StrategyName::Guided => self.at_most(plan).saturating_sub(1).max(1),
                _ => self.most.map_or(usize::MAX, |most| most as usize),
            },
            seed: plan.seed,
            prior: match name {
                StrategyName::Guided => Prior::learn(&knobs, &earlier),
                _ => Prior::default(),
            },
            ..SearchOptions::default()
        };
        Ok(name.start(space, &self.question(), terms))
    }
}

/// Whether a configuration needs as much memory as one that had too little, whatever is set on the GPUs: a
/// batch as large of the same work.
fn is_as_large(own: &Configuration, too_large: &[&Configuration]) -> bool {
    let work = |configuration: &Configuration| {
        let mut parameters = configuration.parameters.clone();
        parameters.remove(BATCH);
        (configuration.gpus, parameters)
    };
    let as_large = |other: &Configuration| match (own.batch(), other.batch()) {
        (Some(own), Some(other)) => own >= other,
        (own, other) => own == other,
    };
    let mut others = too_large.iter();
    others.any(|other| as_large(other) && work(own) == work(other))
}

/// Every configuration as a place.
fn space(plan: &Plan) -> Result<(Vec<KnobKind>, SearchSpace), SearchError> {
    let mut knobs: Vec<KnobKind> = plan.axes.iter().map(Axis::knob).collect();
    let mut places: Vec<Vec<f64>> = plan
        .configurations
        .iter()
        .map(|configuration| place(plan, configuration))
        .collect();
    let space = match SearchSpace::new(knobs.clone(), places.clone(), plan.reference) {
        // The reference differs in something that is no axis.
        Err(SearchSpaceError::Duplicate(_)) => {
            for (index, place) in places.iter_mut().enumerate() {
                place.push(f64::from(u8::from(index == plan.reference)));
            }
            knobs.push(KnobKind::Level);
            SearchSpace::new(knobs.clone(), places, plan.reference)
        }
        space => space,
    };
    let space = space.map_err(|error| SearchError(error.to_string()))?;
    Ok((knobs, space))
}

fn place(plan: &Plan, configuration: &Configuration) -> Vec<f64> {
    let value = |axis: &Axis| {
        axis.number(configuration).unwrap_or_else(|| {
            // What has no number has its place in the list.
            let text = axis.text(configuration);
            let mut texts = plan.configurations.iter().map(|other| axis.text(other));
            texts.position(|other| other == text).unwrap_or(0) as f64 + 1.0
        })
    };
    plan.axes.iter().map(value).collect()
}

impl EarlierStudy {
    /// Of a study that varies the same; nothing where it cannot teach.
    pub fn of(study: &Study, axes: &[Axis]) -> Option<Self> {
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
        let stride = others.len().div_ceil(PLACES).max(1);
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

    fn lesson(&self) -> Option<EarlierResults> {
        let mut places = Vec::new();
        let mut outcomes = Vec::new();
        for row in &self.rows {
            let [place @ .., time, energy] = row.as_slice() else {
                return None;
            };
            places.push(place.to_vec());
            outcomes.push(Outcome {
                gpus: self.gpus,
                ..Outcome::new(Seconds::new(*time), Joules::new(*energy))
            });
        }
        Some(EarlierResults {
            points: places,
            outcomes,
            reference: self.reference,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_as_large_as_one_that_had_too_little_memory_is_not_tried() {
        let of = |batch: u64, gpus: u64| {
            let one = Configuration {
                gpus,
                ..Configuration::default()
            };
            one.with_batch(batch)
        };
        let failed = of(128, 1);
        let is_out = |own: &Configuration| is_as_large(own, &[&failed]);
        assert!(is_out(&of(128, 1)) && is_out(&of(256, 1)));
        assert!(!is_out(&of(64, 1)) && !is_out(&of(128, 2)));
        assert!(!is_as_large(&of(128, 1), &[]));
    }
}
