//! The evaluations of a search so far, and the best of them.

use sweetspot_quantity::{Joules, Seconds};

use super::{Evaluation, Noise, Recommendation, SearchSpace, StopReason};
use crate::{Candidate, Comparison, Criteria, Outcome, best};

/// The evaluations of a search so far.
#[derive(Clone, Debug)]
pub(super) struct EvaluationLog {
    pub(super) space: SearchSpace,
    pub(super) criteria: Criteria,
    max_evaluations: usize,
    /// The evaluations of each point.
    candidates: Vec<Candidate>,
    /// For each point, the noise of each of its evaluations, if known.
    noise: Vec<Vec<Option<Noise>>>,
    evaluations: usize,
}

impl EvaluationLog {
    pub(super) fn new(space: SearchSpace, criteria: &Criteria, max_evaluations: usize) -> Self {
        Self {
            candidates: vec![Candidate::default(); space.points().len()],
            noise: vec![Vec::new(); space.points().len()],
            space,
            criteria: criteria.clone(),
            max_evaluations,
            evaluations: 0,
        }
    }

    /// Records an evaluation; an evaluation of an unknown point is ignored.
    pub(super) fn record(&mut self, point: usize, evaluation: Evaluation) {
        let Some(candidate) = self.candidates.get_mut(point) else {
            return;
        };
        self.evaluations += usize::from(evaluation != Evaluation::Impossible);
        match evaluation {
            Evaluation::Measured { outcome, noise } => {
                candidate.runs.push(*outcome);
                self.noise[point].push(noise);
            }
            Evaluation::Failed | Evaluation::Impossible => {
                candidate.failed = Some("it failed".to_owned());
            }
        }
    }

    /// Whether a point needs no more evaluations, because it failed or was repeated often enough.
    pub(super) fn is_complete(&self, point: usize, repeats: usize) -> bool {
        let candidate = &self.candidates[point];
        candidate.failed.is_some() || candidate.runs.len() >= repeats.max(1)
    }

    /// The number of evaluations so far.
    pub(super) fn evaluations(&self) -> usize {
        self.evaluations
    }

    /// Whether an evaluation of the point failed.
    pub(super) fn has_failed(&self, point: usize) -> bool {
        self.candidates[point].failed.is_some()
    }

    /// Whether the noise of every evaluation is known.
    pub(super) fn is_noise_known(&self) -> bool {
        self.noise.iter().flatten().all(Option::is_some)
    }

    /// The noise of a measured point's mean; an evaluation whose noise is unknown is assumed to have the noise
    /// `default`.
    pub(super) fn noise_of_mean(&self, point: usize, default: Noise) -> Noise {
        let known = &self.noise[point];
        let mean = |component: fn(Noise) -> f64| {
            let squares = known
                .iter()
                .map(|noise| component(noise.unwrap_or(default)).powi(2));
            libm::sqrt(squares.sum::<f64>()) / known.len() as f64
        };
        Noise {
            time: mean(|noise| noise.time),
            energy: mean(|noise| noise.energy),
        }
    }

    /// The successful runs of a point, in the order of their evaluation.
    pub(super) fn readings(&self, point: usize) -> &[Outcome] {
        self.candidates
            .get(point)
            .map_or(&[], |candidate| candidate.runs.as_slice())
    }

    /// The mean of a point's runs with the medians of their times and energies, which one wrong run of three does not
    /// change.
    pub(super) fn median(&self, point: usize) -> Option<Outcome> {
        let runs = self.readings(point);
        let mut middle = Outcome::mean(runs)?;
        let times = runs.iter().map(|run| run.time.get());
        middle.time = Seconds::new(median(times.collect())?);
        let energies = runs.iter().map(|run| Some(run.energy?.get()));
        let energies: Option<Vec<f64>> = energies.collect();
        middle.energy = energies.and_then(median).map(Joules::new);
        Some(middle)
    }

    /// The comparison of all points with the reference.
    pub(super) fn comparison(&self) -> Comparison {
        let reference = &self.candidates[self.space.reference()];
        Comparison::new(
            &self.candidates,
            Some(reference),
            self.criteria.tariff.clone(),
        )
    }

    /// Why the search must stop with any strategy; `None` if it may continue.
    pub(super) fn stop_reason(&self) -> Option<StopReason> {
        if self.candidates[self.space.reference()].failed.is_some() {
            Some(StopReason::ReferenceFailed)
        } else if self.evaluations >= self.max_evaluations {
            Some(StopReason::BudgetSpent)
        } else {
            None
        }
    }

    /// The best of the given points that was measured and meets the limits.
    pub(super) fn best_of(&self, points: &[usize]) -> Option<usize> {
        let comparison = self.comparison();
        let basis = comparison.basis();
        let meets_limits = |mean: &&Outcome| {
            let mut limits = self.criteria.limits.iter();
            limits.all(|limit| limit.check(mean, basis).is_ok())
        };
        let (points, means): (Vec<usize>, Vec<Outcome>) = points
            .iter()
            .filter_map(|point| {
                let mean = comparison.mean(*point).filter(meets_limits)?;
                Some((*point, mean.clone()))
            })
            .unzip();
        best(&means, basis, self.criteria.objective).map(|index| points[index])
    }

    /// Recommends the best measured point.
    pub(super) fn recommend(&self) -> Option<Recommendation> {
        let measured: Vec<usize> = (0..self.candidates.len())
            .filter(|point| self.is_complete(*point, 1))
            .collect();
        self.best_of(&measured).map(|point| Recommendation {
            point,
            expected_regret: None,
            regret_bound: None,
        })
    }
}

/// The median of values; `None` if there are none.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(match values.len() % 2 {
        1 => upper,
        _ => 0.5 * (values[middle - 1] + upper),
    })
}
