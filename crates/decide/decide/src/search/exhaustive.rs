//! Exhaustive search: every point, the reference first.

use super::evaluation_log::EvaluationLog;
use super::{
    Evaluation, Proposal, Recommendation, SearchOptions, SearchSpace, StopReason, Strategy,
};
use crate::Criteria;

/// The strategy `exhaustive`: it evaluates every point.
pub(super) struct Exhaustive {
    log: EvaluationLog,
    repeats: usize,
}

impl Exhaustive {
    pub(super) fn new(space: SearchSpace, criteria: &Criteria, options: SearchOptions) -> Self {
        Self {
            log: EvaluationLog::new(space, criteria, options.max_evaluations),
            repeats: options.repeats,
        }
    }
}

impl Strategy for Exhaustive {
    fn ask(&mut self) -> Proposal {
        if let Some(reason) = self.log.stop_reason() {
            return Proposal::Stop(reason);
        }
        let space = &self.log.space;
        let mut points = std::iter::once(space.reference()).chain(0..space.points().len());
        points
            .find(|point| !self.log.is_complete(*point, self.repeats))
            .map_or(Proposal::Stop(StopReason::Complete), Proposal::Evaluate)
    }

    fn tell(&mut self, point: usize, evaluation: Evaluation) {
        self.log.record(point, evaluation);
    }

    fn recommend(&mut self) -> Option<Recommendation> {
        self.log.recommend()
    }
}
