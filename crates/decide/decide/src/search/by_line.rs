//! One knob after the other: a line search along each, through the best of the one before.

use super::ledger::Ledger;
use super::{Answer, Ask, Done, Space, Strategy, Terms, Told};
use crate::Question;

/// A way to search along one knob.
pub(super) trait Line {
    /// The next place of a line that it wants evaluated, by what the ledger has; places ascend in the knob.
    fn wants(&self, ledger: &Ledger, line: &[usize], knob: usize) -> Option<usize>;
}

pub(super) struct ByLine<L> {
    ledger: Ledger,
    repeats: usize,
    search: L,
}

impl<L: Line> ByLine<L> {
    pub(super) fn new(space: Space, question: &Question, terms: &Terms, search: L) -> Self {
        Self {
            ledger: Ledger::new(space, question, terms.most),
            repeats: terms.repeats,
            search,
        }
    }
}

impl<L: Line> Strategy for ByLine<L> {
    fn ask(&mut self) -> Ask {
        if let Some(done) = self.ledger.end() {
            return Ask::Done(done);
        }
        let reference = self.ledger.space.reference();
        if !self.ledger.has(reference, self.repeats) {
            return Ask::Evaluate(reference);
        }
        let mut best = reference;
        for knob in 0..self.ledger.space.knobs().len() {
            let mut line = self.ledger.space.line(best, knob);
            if let Some(place) = self.search.wants(&self.ledger, &line, knob) {
                return Ask::Evaluate(place);
            }
            line.retain(|place| self.ledger.has(*place, 1));
            best = self.ledger.best_of(&line).unwrap_or(best);
        }
        Ask::Done(Done::Complete)
    }

    fn tell(&mut self, place: usize, told: Told) {
        self.ledger.tell(place, told);
    }

    fn answer(&mut self) -> Option<Answer> {
        self.ledger.answer()
    }
}
