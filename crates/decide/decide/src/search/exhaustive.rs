//! Every place, the reference first.

use super::ledger::Ledger;
use super::{Answer, Ask, Done, Space, Strategy, Terms, Told};
use crate::Question;

pub(super) struct Exhaustive {
    ledger: Ledger,
    repeats: usize,
}

impl Exhaustive {
    pub(super) fn new(space: Space, question: &Question, terms: Terms) -> Self {
        Self {
            ledger: Ledger::new(space, question, terms.most),
            repeats: terms.repeats,
        }
    }
}

impl Strategy for Exhaustive {
    fn ask(&mut self) -> Ask {
        if let Some(done) = self.ledger.end() {
            return Ask::Done(done);
        }
        let space = &self.ledger.space;
        let mut places = std::iter::once(space.reference()).chain(0..space.places().len());
        places
            .find(|place| !self.ledger.has(*place, self.repeats))
            .map_or(Ask::Done(Done::Complete), Ask::Evaluate)
    }

    fn tell(&mut self, place: usize, told: Told) {
        self.ledger.tell(place, told);
    }

    fn answer(&mut self) -> Option<Answer> {
        self.ledger.answer()
    }
}
