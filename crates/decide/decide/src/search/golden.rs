//! Golden-section search along a knob.

use super::SearchOptions;
use super::coordinate::LineSearch;
use super::evaluation_log::EvaluationLog;

/// The share of an interval that remains after each step.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_8;

/// The strategy `golden`: golden-section search along each knob.
pub(super) struct Golden {
    repeats: usize,
}

impl Golden {
    pub(super) fn new(options: &SearchOptions) -> Self {
        Self {
            repeats: options.repeats,
        }
    }
}

impl LineSearch for Golden {
    /// Computes the next point from all evaluations in the log, so the strategy stores no state of its own.
    fn next_point(&self, log: &EvaluationLog, line: &[usize], knob: usize) -> Option<usize> {
        let space = &log.space;
        let value = |point: usize| space.points()[point][knob];
        let (mut low, mut high) = (value(*line.first()?), value(*line.last()?));
        let finest = line
            .windows(2)
            .map(|pair| value(pair[1]) - value(pair[0]))
            .fold(high - low, f64::min);
        while high - low > finest {
            let inner = (high - low) * GOLDEN_RATIO;
            let left = space.nearest(line, knob, high - inner)?;
            let right = space.nearest(line, knob, low + inner)?;
            let mut pair = [left, right].into_iter();
            if let Some(point) = pair.find(|point| !log.is_complete(*point, self.repeats)) {
                return Some(point);
            }
            if left == right {
                return None;
            }
            match log.best_of(&[left, right]) == Some(right) {
                true => low = high - inner,
                false => high = low + inner,
            }
        }
        None
    }
}
