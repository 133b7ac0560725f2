//! Linear search: equal steps down a knob.

use super::coordinate::LineSearch;
use super::evaluation_log::EvaluationLog;
use super::{KnobKind, SearchOptions};

/// The default step of a power cap, in watts, as in Zeus' power limit optimiser (`power_limit_step`).
const POWER_CAP_STEP: f64 = 25.0;
/// The number of steps over the range of a clock if no step is given, as in DEPO's linear search.
const CLOCK_STEPS: f64 = 10.0;
/// The maximum number of steps over the range of a knob; a step that would lead to more is enlarged.
const MAX_STEPS: f64 = 10_000.0;

/// The strategy `linear`: it steps down from the highest value of each knob.
pub(super) struct Linear {
    repeats: usize,
    /// The step in the unit of the knob; absent for the default step.
    step: Option<f64>,
}

impl Linear {
    pub(super) fn new(options: &SearchOptions) -> Self {
        Self {
            repeats: options.repeats,
            step: options.step,
        }
    }

    /// Returns the points of a line that are nearest to equal steps down from the highest value of the knob.
    fn steps(&self, log: &EvaluationLog, line: &[usize], knob: usize) -> Vec<usize> {
        let space = &log.space;
        let (Some(lowest), Some(highest)) = (line.first(), line.last()) else {
            return Vec::new();
        };
        let value = |point: usize| space.points()[point][knob];
        let highest = value(*highest);
        let range = highest - value(*lowest);
        let distances = line.windows(2).map(|pair| value(pair[1]) - value(pair[0]));
        let finest = distances.fold(range, f64::min).max(range / MAX_STEPS);
        let step = match (self.step, space.knobs()[knob]) {
            // Levels have an order but no distances, so every level is tried.
            (_, KnobKind::Level) => return line.iter().rev().copied().collect(),
            // A step below the smallest distance between points would find no further points.
            (Some(step), _) => step.max(finest),
            (None, KnobKind::PowerCap) => POWER_CAP_STEP,
            (None, KnobKind::CoreClock) => range / CLOCK_STEPS,
        };
        let count = match step > 0.0 {
            true => (range / step + 1e-9) as usize,
            false => 0,
        };
        let mut points: Vec<usize> = (0..=count)
            .filter_map(|number| space.nearest(line, knob, highest - step * number as f64))
            .collect();
        points.dedup();
        points
    }
}

impl LineSearch for Linear {
    fn next_point(&self, log: &EvaluationLog, line: &[usize], knob: usize) -> Option<usize> {
        let mut steps = self.steps(log, line, knob).into_iter();
        steps.find(|point| !log.is_complete(*point, self.repeats))
    }
}
