//! Equal steps down each knob, one knob after the other.

use super::ledger::Ledger;
use super::{Answer, Ask, Done, Knob, Space, Strategy, Terms, Told};
use crate::Question;

/// Of Zeus' power limit optimiser (`power_limit_step`, 25 W).
const WATTS: f64 = 25.0;
/// Of DEPO's linear search: the range in so many parts, where no step is known.
const PARTS: f64 = 10.0;

pub(super) struct Linear {
    ledger: Ledger,
    repeats: usize,
    step: Option<f64>,
}

impl Linear {
    pub(super) fn new(space: Space, question: &Question, terms: Terms) -> Self {
        Self {
            ledger: Ledger::new(space, question, terms.most),
            repeats: terms.repeats,
            step: terms.step,
        }
    }

    /// The places at equal steps from the highest, those nearest to them.
    fn steps(&self, line: &[usize], knob: usize) -> Vec<usize> {
        let space = &self.ledger.space;
        let value = |place: usize| space.places()[place][knob];
        let (Some(lowest), Some(highest)) = (line.first(), line.last()) else {
            return Vec::new();
        };
        let range = value(*highest) - value(*lowest);
        let step = match (self.step, space.knobs()[knob]) {
            // A level has no distance: each is tried.
            (_, Knob::Level) => return line.iter().rev().copied().collect(),
            (Some(step), _) => step,
            (None, Knob::PowerCap) => WATTS,
            (None, Knob::CoreClock) => range / PARTS,
        };
        let count = match step > 0.0 {
            true => (range / step + 1e-9) as usize,
            false => 0,
        };
        let mut places: Vec<usize> = (0..=count)
            .filter_map(|number| {
                let wanted = value(*highest) - step * number as f64;
                let distance = |place: &usize| (value(*place) - wanted).abs();
                line.iter()
                    .min_by(|a, b| distance(a).total_cmp(&distance(b)))
                    .copied()
            })
            .collect();
        places.dedup();
        places
    }
}

impl Strategy for Linear {
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
            let steps = self.steps(&self.ledger.space.line(best, knob), knob);
            let missing = steps
                .iter()
                .find(|place| !self.ledger.has(**place, self.repeats));
            if let Some(place) = missing {
                return Ask::Evaluate(*place);
            }
            let tried: Vec<usize> = steps.into_iter().chain([best]).collect();
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
