//! What has been evaluated, and the best of it.

use super::{Answer, Done, Noise, Space, Told};
use crate::{Candidate, Comparison, Outcome, Question, best};

/// The evaluations of a search.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub(super) space: Space,
    pub(super) question: Question,
    most: usize,
    candidates: Vec<Candidate>,
    noise: Vec<Vec<Option<Noise>>>,
    evaluations: usize,
}

impl Ledger {
    pub(super) fn new(space: Space, question: &Question, most: usize) -> Self {
        Self {
            candidates: vec![Candidate::default(); space.places().len()],
            noise: vec![Vec::new(); space.places().len()],
            space,
            question: question.clone(),
            most,
            evaluations: 0,
        }
    }

    pub(super) fn tell(&mut self, place: usize, told: Told) {
        let Some(candidate) = self.candidates.get_mut(place) else {
            return;
        };
        self.evaluations += usize::from(told != Told::Impossible);
        match told {
            Told::Measured { outcome, noise } => {
                candidate.runs.push(*outcome);
                self.noise[place].push(noise);
            }
            Told::Failed | Told::Impossible => candidate.failed = Some("it failed".to_owned()),
        }
    }

    /// Whether a place needs no more evaluations.
    pub(super) fn has(&self, place: usize, repeats: usize) -> bool {
        let candidate = &self.candidates[place];
        candidate.failed.is_some() || candidate.runs.len() >= repeats.max(1)
    }

    /// How many there were.
    pub(super) fn evaluations(&self) -> usize {
        self.evaluations
    }

    pub(super) fn has_failed(&self, place: usize) -> bool {
        self.candidates[place].failed.is_some()
    }

    /// Whether evaluations are told with their noise.
    pub(super) fn noise_is_told(&self) -> bool {
        self.noise.iter().flatten().all(Option::is_some)
    }

    /// The noise of the mean at a place that was measured.
    pub(super) fn noise_of_mean(&self, place: usize, usual: Noise) -> Noise {
        let told = &self.noise[place];
        let mean = |of: fn(Noise) -> f64| {
            let squares = told.iter().map(|noise| of(noise.unwrap_or(usual)).powi(2));
            libm::sqrt(squares.sum::<f64>()) / told.len() as f64
        };
        Noise {
            time: mean(|noise| noise.time),
            energy: mean(|noise| noise.energy),
        }
    }

    /// All places, made comparable.
    pub(super) fn comparison(&self) -> Comparison {
        let reference = &self.candidates[self.space.reference()];
        Comparison::new(
            &self.candidates,
            Some(reference),
            self.question.tariff.clone(),
        )
    }

    /// Why nothing more may be evaluated at all.
    pub(super) fn end(&self) -> Option<Done> {
        if self.candidates[self.space.reference()].failed.is_some() {
            Some(Done::ReferenceFailed)
        } else if self.evaluations >= self.most {
            Some(Done::Spent)
        } else {
            None
        }
    }

    /// The best place that was measured and keeps to the limits, of those given.
    pub(super) fn best_of(&self, places: &[usize]) -> Option<usize> {
        let comparison = self.comparison();
        let basis = comparison.basis();
        let keeps = |mean: &&Outcome| {
            let mut limits = self.question.limits.iter();
            limits.all(|limit| limit.check(mean, basis).is_ok())
        };
        let (places, means): (Vec<usize>, Vec<Outcome>) = places
            .iter()
            .filter_map(|place| Some((*place, comparison.mean(*place).filter(keeps)?.clone())))
            .unzip();
        best(&means, basis, self.question.objective).map(|index| places[index])
    }

    pub(super) fn answer(&self) -> Option<Answer> {
        let measured: Vec<usize> = (0..self.candidates.len())
            .filter(|place| self.has(*place, 1))
            .collect();
        self.best_of(&measured).map(|place| Answer {
            place,
            expected_regret: None,
        })
    }
}
