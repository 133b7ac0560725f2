//! Coordinate search: a line search along one knob after the other, each through the best point of the previous
//! line.

use super::evaluation_log::EvaluationLog;
use super::{
    Evaluation, Proposal, Recommendation, SearchOptions, SearchSpace, StopReason, Strategy,
};
use crate::Criteria;

/// An algorithm that searches along one knob while the others are fixed.
pub(super) trait LineSearch {
    /// Returns the next point of a line to evaluate, given the evaluations in the log; `None` if the line is done.
    /// The points of the line are sorted by the value of the knob.
    fn next_point(&self, log: &EvaluationLog, line: &[usize], knob: usize) -> Option<usize>;
}

/// A strategy that applies a line search to each knob in turn.
pub(super) struct CoordinateSearch<L> {
    log: EvaluationLog,
    /// The number of evaluations of each point.
    repeats: usize,
    line_search: L,
}

impl<L: LineSearch> CoordinateSearch<L> {
    pub(super) fn new(
        space: SearchSpace,
        criteria: &Criteria,
        options: &SearchOptions,
        line_search: L,
    ) -> Self {
        Self {
            log: EvaluationLog::new(space, criteria, options.max_evaluations),
            repeats: options.repeats,
            line_search,
        }
    }
}

impl<L: LineSearch> Strategy for CoordinateSearch<L> {
    fn ask(&mut self) -> Proposal {
        if let Some(reason) = self.log.stop_reason() {
            return Proposal::Stop(reason);
        }
        let reference = self.log.space.reference();
        if !self.log.is_complete(reference, self.repeats) {
            return Proposal::Evaluate(reference);
        }
        let mut best = reference;
        for knob in 0..self.log.space.knobs().len() {
            let mut line = self.log.space.line(best, knob);
            if let Some(point) = self.line_search.next_point(&self.log, &line, knob) {
                return Proposal::Evaluate(point);
            }
            line.retain(|point| self.log.is_complete(*point, 1));
            best = self.log.best_of(&line).unwrap_or(best);
        }
        Proposal::Stop(StopReason::Complete)
    }

    fn tell(&mut self, point: usize, evaluation: Evaluation) {
        self.log.record(point, evaluation);
    }

    fn recommend(&mut self) -> Option<Recommendation> {
        self.log.recommend()
    }
}
