//! Golden section along a knob.

use super::Terms;
use super::by_line::Line;
use super::ledger::Ledger;

const GOLDEN: f64 = 0.618_033_988_749_894_8;

pub(super) struct Golden {
    repeats: usize,
}

impl Golden {
    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            repeats: terms.repeats,
        }
    }
}

impl Line for Golden {
    /// Goes through the section again from what has been evaluated.
    fn wants(&self, ledger: &Ledger, line: &[usize], knob: usize) -> Option<usize> {
        let space = &ledger.space;
        let value = |place: usize| space.places()[place][knob];
        let (mut low, mut high) = (value(*line.first()?), value(*line.last()?));
        let finest = line
            .windows(2)
            .map(|pair| value(pair[1]) - value(pair[0]))
            .fold(high - low, f64::min);
        while high - low > finest {
            let inner = (high - low) * GOLDEN;
            let left = space.nearest(line, knob, high - inner)?;
            let right = space.nearest(line, knob, low + inner)?;
            let mut pair = [left, right].into_iter();
            if let Some(place) = pair.find(|place| !ledger.has(*place, self.repeats)) {
                return Some(place);
            }
            if left == right {
                return None;
            }
            match ledger.best_of(&[left, right]) == Some(right) {
                true => low = high - inner,
                false => high = low + inner,
            }
        }
        None
    }
}
