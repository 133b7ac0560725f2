//! Equal steps down a knob.

use super::by_line::Line;
use super::ledger::Ledger;
use super::{Knob, Terms};

/// Of Zeus' power limit optimiser (`power_limit_step`, 25 W).
const WATTS: f64 = 25.0;
/// Of DEPO's linear search: the range in so many parts, where no step is known.
const PARTS: f64 = 10.0;

/// No line is finer than this.
const MOST: f64 = 10_000.0;

pub(super) struct Linear {
    repeats: usize,
    step: Option<f64>,
}

impl Linear {
    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            repeats: terms.repeats,
            step: terms.step,
        }
    }

    /// The places at equal steps from the highest, those nearest to them.
    fn steps(&self, ledger: &Ledger, line: &[usize], knob: usize) -> Vec<usize> {
        let space = &ledger.space;
        let (Some(lowest), Some(highest)) = (line.first(), line.last()) else {
            return Vec::new();
        };
        let value = |place: usize| space.places()[place][knob];
        let highest = value(*highest);
        let range = highest - value(*lowest);
        let apart = line.windows(2).map(|pair| value(pair[1]) - value(pair[0]));
        let finest = apart.fold(range, f64::min).max(range / MOST);
        let step = match (self.step, space.knobs()[knob]) {
            // A level has no distance: each is tried.
            (_, Knob::Level) => return line.iter().rev().copied().collect(),
            // Between two neighbours there is nothing to evaluate.
            (Some(step), _) => step.max(finest),
            (None, Knob::PowerCap) => WATTS,
            (None, Knob::CoreClock) => range / PARTS,
        };
        let count = match step > 0.0 {
            true => (range / step + 1e-9) as usize,
            false => 0,
        };
        let mut places: Vec<usize> = (0..=count)
            .filter_map(|number| space.nearest(line, knob, highest - step * number as f64))
            .collect();
        places.dedup();
        places
    }
}

impl Line for Linear {
    fn wants(&self, ledger: &Ledger, line: &[usize], knob: usize) -> Option<usize> {
        let mut steps = self.steps(ledger, line, knob).into_iter();
        steps.find(|place| !ledger.has(*place, self.repeats))
    }
}
