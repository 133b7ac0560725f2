//! The sweeps of a reproduction.

use std::num::NonZeroUsize;

use sweetspot_decide::{Comparison, Objective, Outcome, Tariff};
use sweetspot_study::{Definition, Point, Study};

use crate::PapersError;

/// Runs the sweeps of a reproduction and counts them.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRunner {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of threads that simulate runs; the results do not depend on it.
    threads: NonZeroUsize,
    /// The number of sweeps run so far.
    pub studies: usize,
    /// The number of configurations swept so far.
    pub configurations: usize,
    /// The number of runs simulated so far.
    pub runs: usize,
}

impl SweepRunner {
    /// A runner that has not run anything yet.
    pub(crate) const fn new(seed: u64, threads: NonZeroUsize) -> Self {
        Self {
            seed,
            threads,
            studies: 0,
            configurations: 0,
            runs: 0,
        }
    }

    /// Runs a sweep without storing it.
    pub(crate) fn sweep(&mut self, definition: Definition) -> Result<Study, PapersError> {
        let definition = Definition {
            seed: Some(self.seed),
            ..definition
        };
        let study = sweetspot_virtual_time::sweep(&definition, self.threads)?;
        self.studies += 1;
        self.configurations += study.plan.configurations.len();
        self.runs += study.plan.len();
        Ok(study)
    }
}

/// A sweep over power caps, whose points can be looked up by cap.
pub(crate) struct CapCurve {
    pub comparison: Comparison,
    /// Each power cap in watts, with the index of its point in the study.
    pub axis: Vec<(f64, usize)>,
}

impl CapCurve {
    /// Finds the points of a study that has swept power caps.
    pub fn new(study: &Study) -> Self {
        let comparison = study.comparison(&Tariff::NONE);
        let points = study.points.iter().enumerate();
        let axis = points.filter_map(|(index, point)| Some((cap(point)?, index)));
        Self {
            comparison,
            axis: axis.collect(),
        }
    }

    /// The index of the point with this power cap in watts.
    fn index(&self, cap: f64) -> Option<usize> {
        let found = self.axis.iter().find(|(at, _)| *at == cap);
        found.map(|(_, index)| *index)
    }

    /// The mean time and energy at a power cap in watts.
    pub fn outcome_at(&self, cap: f64) -> Option<&Outcome> {
        self.comparison.mean(self.index(cap)?)
    }

    /// The mean time and energy of the reference, which has the default cap.
    pub fn reference(&self) -> Option<&Outcome> {
        self.comparison.reference()
    }

    /// The value of an objective at a power cap in watts.
    pub fn value(&self, cap: f64, objective: Objective) -> Option<f64> {
        let estimate = self.comparison.estimate(self.index(cap)?, objective).ok()?;
        Some(estimate.value)
    }

    /// The best power cap in watts for an objective, and the objective's value there.
    pub fn best(&self, objective: Objective) -> Option<(f64, f64)> {
        let best = self.comparison.best_mean(objective, &[]).ok()?;
        let found = self.axis.iter().find(|(_, index)| *index == best);
        let estimate = self.comparison.estimate(best, objective).ok()?;
        Some((found?.0, estimate.value))
    }

    /// The gain of the best power cap over the default cap for an objective, as a fraction.
    pub fn gain(&self, objective: Objective) -> Option<f64> {
        let (_, best) = self.best(objective)?;
        match objective {
            Objective::GainMinusLoss => Some(best),
            _ => {
                let reference = self.reference()?;
                let at_default = objective.value(reference, reference).ok()?;
                Some(1.0 - best / at_default)
            }
        }
    }
}

/// The power cap of a point in watts.
fn cap(point: &Point) -> Option<f64> {
    point.configuration.power_caps.first().map(|cap| cap.get())
}

/// The energy of an outcome in joules.
pub(crate) fn joules(outcome: &Outcome) -> Option<f64> {
    outcome.energy.map(|energy| energy.get())
}
