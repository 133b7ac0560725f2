//! Golden section along each knob, one knob after the other.

use super::ledger::Ledger;
use super::{Answer, Ask, Done, Space, Strategy, Terms, Told};
use crate::Question;

const GOLDEN: f64 = 0.618_033_988_749_894_8;

pub(super) struct Golden {
    ledger: Ledger,
    repeats: usize,
}

/// Where a line's section ended, or what it needs.
enum Section {
    Needs(usize),
    Ends,
}

impl Golden {
    pub(super) fn new(space: Space, question: &Question, terms: Terms) -> Self {
        Self {
            ledger: Ledger::new(space, question, terms.most),
            repeats: terms.repeats,
        }
    }

    /// Replays the section along a line from what has been evaluated.
    fn section(&self, line: &[usize], knob: usize) -> Section {
        let value = |place: usize| self.ledger.space.places()[place][knob];
        let nearest = |wanted: f64| {
            let distance = |place: &usize| (value(*place) - wanted).abs();
            line.iter()
                .min_by(|a, b| distance(a).total_cmp(&distance(b)))
                .copied()
        };
        let (Some(lowest), Some(highest)) = (line.first(), line.last()) else {
            return Section::Ends;
        };
        let (mut low, mut high) = (value(*lowest), value(*highest));
        let finest = line
            .windows(2)
            .map(|pair| value(pair[1]) - value(pair[0]))
            .fold(high - low, f64::min);
        while high - low > finest {
            let inner = (high - low) * GOLDEN;
            let (Some(left), Some(right)) = (nearest(high - inner), nearest(low + inner)) else {
                return Section::Ends;
            };
            let pair = [left, right];
            let missing = pair
                .iter()
                .find(|place| !self.ledger.has(**place, self.repeats));
            if let Some(place) = missing {
                return Section::Needs(*place);
            }
            if left == right {
                return Section::Ends;
            }
            match self.ledger.best_of(&pair) == Some(right) {
                true => low = high - inner,
                false => high = low + inner,
            }
        }
        Section::Ends
    }
}

impl Strategy for Golden {
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
            let line = self.ledger.space.line(best, knob);
            if let Section::Needs(place) = self.section(&line, knob) {
                return Ask::Evaluate(place);
            }
            let tried: Vec<usize> = line
                .into_iter()
                .filter(|place| self.ledger.has(*place, 1))
                .collect();
            best = self.ledger.best_of(&tried).unwrap_or(best);
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
