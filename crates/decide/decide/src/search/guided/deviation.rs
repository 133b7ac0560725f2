//! How the results of an earlier study deviate from the workload that explains them best.

use sweetspot_stats::matern;

use super::posterior::LogRatios;
use crate::search::{KnobKind, SearchSpace};

/// The smooth part of the deviation of a study from a workload's curve: a function of the knobs that holds what the
/// workload model leaves unexplained, without the noise of single points.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Deviation {
    knobs: Vec<KnobKind>,
    /// The points of the study.
    points: Vec<Vec<f64>>,
    /// The distance over which deviations are correlated, for each knob.
    lengths: Vec<f64>,
    /// The weight of the correlation with each point, for time and for energy.
    weights: Vec<LogRatios>,
    reference: usize,
    /// The mean power per GPU at the reference, in watts.
    reference_power: f64,
}

impl Deviation {
    /// Creates the deviation of a study with these points, whose correlation with each point has a weight.
    pub(super) fn new(
        space: &SearchSpace,
        lengths: Vec<f64>,
        weights: Vec<LogRatios>,
        reference_power: f64,
    ) -> Self {
        Self {
            knobs: space.knobs().to_vec(),
            points: space.points().to_vec(),
            lengths,
            weights,
            reference: space.reference(),
            reference_power,
        }
    }

    /// The deviations of log time and log energy at a point of another search, relative to that search's reference.
    /// The point corresponds to the one of the study whose power cap is the same share of the power at the reference,
    /// and whose clock is the same share of the reference's clock.
    pub(super) fn log_ratios(&self, point: &[f64], reference: &[f64], power: f64) -> LogRatios {
        let (here, there) = (
            self.at(&self.corresponding(point, reference, power)),
            self.at(&self.corresponding(reference, reference, power)),
        );
        [here[0] - there[0], here[1] - there[1]]
    }

    /// The coordinates in the study that correspond to a point of another search.
    fn corresponding(&self, point: &[f64], reference: &[f64], power: f64) -> Vec<f64> {
        let own = &self.points[self.reference];
        let knobs = self.knobs.iter().enumerate();
        knobs
            .map(|(knob, kind)| match kind {
                KnobKind::PowerCap => point[knob] * self.reference_power / power,
                _ => point[knob] * own[knob] / reference[knob].max(1e-3),
            })
            .collect()
    }

    fn at(&self, coordinates: &[f64]) -> LogRatios {
        let mut sum = [0.0; 2];
        for (point, weights) in self.points.iter().zip(&self.weights) {
            let knobs = coordinates.iter().zip(point).zip(&self.lengths);
            let correlation: f64 = knobs
                .map(|((here, there), length)| matern((here - there).abs() / length))
                .product();
            sum[0] += correlation * weights[0];
            sum[1] += correlation * weights[1];
        }
        sum
    }
}
