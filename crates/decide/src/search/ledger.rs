//! What has been evaluated, and the best of it.

use super::{Answer, Done, Space, Told};
use crate::{Candidate, Comparison, Question};

/// The evaluations of a search.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub(super) space: Space,
    question: Question,
    most: usize,
    candidates: Vec<Candidate>,
    evaluations: usize,
}

impl Ledger {
    pub(super) fn new(space: Space, question: &Question, most: usize) -> Self {
        Self {
            candidates: vec![Candidate::default(); space.places().len()],
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
        self.evaluations += 1;
        match told {
            Told::Measured { outcome, .. } => candidate.runs.push(*outcome),
            Told::Failed => candidate.failed = Some("it failed".to_owned()),
        }
    }

    /// Whether a place needs no more evaluations.
    pub(super) fn has(&self, place: usize, repeats: usize) -> bool {
        let candidate = &self.candidates[place];
        candidate.failed.is_some() || candidate.runs.len() >= repeats.max(1)
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

    /// The best place that was measured, of those given.
    pub(super) fn best_of(&self, places: &[usize]) -> Option<usize> {
        let candidates: Vec<Candidate> = places
            .iter()
            .map(|place| self.candidates[*place].clone())
            .collect();
        let reference = &self.candidates[self.space.reference()];
        let comparison =
            Comparison::new(&candidates, Some(reference), self.question.tariff.clone());
        let choice = comparison.choose(self.question.objective, &self.question.limits);
        choice.ok().map(|choice| places[choice.candidate])
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
