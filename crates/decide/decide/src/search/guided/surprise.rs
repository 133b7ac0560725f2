//! Readings that are far from what the model predicted before they were taken. Such a reading is confirmed by another one
//! before the search may stop.

use std::collections::HashMap;

use super::Guided;
use super::posterior::LogRatios;
use crate::Outcome;
use crate::search::Evaluation;

/// A reading is surprising if it is farther from the prediction than this number of standard deviations...
const SURPRISING_DEVIATIONS: f64 = 4.0;
/// ...and by more than this share: smaller errors of the model do not matter.
const SURPRISING_SHARE: f64 = 0.05;

/// The predictions for the next reading, and the surprising readings so far.
#[derive(Default)]
pub(super) struct Surprises {
    /// For each active point, the predicted mean and variance of the logarithms of time and energy, relative to the
    /// reference.
    predictions: HashMap<usize, [(f64, f64); 2]>,
    /// The points of which a reading was surprising.
    points: Vec<usize>,
    /// The point whose reading is to be confirmed.
    unconfirmed: Option<usize>,
    /// Whether that reading is not the surprising one, but one that led to the wrong prediction.
    is_suspect: bool,
}

impl Surprises {
    /// Remembers what the samples of the posterior predict at the active points.
    pub(super) fn predict(&mut self, active: &[usize], samples: &[Vec<f64>]) {
        let count = samples.len() as f64;
        let moments = |column: usize| {
            let mean = samples.iter().map(|sample| sample[column]).sum::<f64>() / count;
            let squares = samples.iter().map(|sample| (sample[column] - mean).powi(2));
            (mean, squares.sum::<f64>() / count)
        };
        let predict = |(index, point): (usize, &usize)| {
            (*point, [moments(index), moments(active.len() + index)])
        };
        self.predictions = active.iter().enumerate().map(predict).collect();
    }

    /// The point whose reading is to be confirmed.
    pub(super) const fn unconfirmed(&self) -> Option<usize> {
        self.unconfirmed
    }

    /// Whether a reading of this point was surprising, or suspected.
    pub(super) fn was_surprising(&self, point: usize) -> bool {
        self.points.contains(&point)
    }

    /// Whether a reading is far from its prediction; `noise` are the standard deviations of time and energy.
    fn is_surprising(&self, point: usize, reading: LogRatios, noise: LogRatios) -> bool {
        self.predictions.get(&point).is_some_and(|predictions| {
            let values = predictions.iter().zip(reading).zip(noise);
            let mut distances = values.map(|(((mean, variance), value), noise)| {
                ((value - mean).abs(), libm::sqrt(variance + noise * noise))
            });
            distances.any(|(distance, deviation)| is_far(distance, deviation))
        })
    }
}

/// Whether a distance of logarithms with this standard deviation is surprising.
fn is_far(distance: f64, deviation: f64) -> bool {
    distance > SURPRISING_SHARE && distance > SURPRISING_DEVIATIONS * deviation
}

impl Guided {
    /// Compares a reading with its prediction, before it is recorded.
    pub(super) fn notice_surprise(&mut self, point: usize, evaluation: &Evaluation) {
        let Evaluation::Measured { outcome, noise } = evaluation else {
            if self.surprises.unconfirmed == Some(point) {
                self.surprises.unconfirmed = None;
            }
            return;
        };
        let noise = noise.unwrap_or_else(|| self.default_noise());
        let noise = [noise.time, noise.energy];
        let earlier = self.log.readings(point);
        if self.surprises.unconfirmed == Some(point) {
            // The second of two readings that disagree does not say which is wrong; the median of three does.
            let ratios = earlier.last().and_then(|last| log_ratios(outcome, last));
            let agrees = ratios.is_none_or(|ratios| {
                let mut pairs = ratios.into_iter().zip(noise);
                !pairs.any(|(ratio, noise)| is_far(ratio.abs(), libm::sqrt(2.0) * noise))
            });
            if agrees || earlier.len() > 1 {
                self.surprises.unconfirmed = None;
                if agrees && !self.surprises.is_suspect {
                    self.suspect_neighbour(point);
                }
            }
            return;
        }
        let is_first = earlier.is_empty();
        if self.options.is_replay {
            // This is the neighbour of the surprising reading.
            self.surprises.unconfirmed = None;
        }
        let reference = self.log.comparison().reference().cloned();
        let reading = reference.and_then(|reference| log_ratios(outcome, &reference));
        if let Some(reading) = reading
            && is_first
            && self.surprises.is_surprising(point, reading, noise)
        {
            self.surprises.points.push(point);
            self.surprises.unconfirmed = Some(point);
            self.surprises.is_suspect = false;
        }
    }

    /// A surprising reading was right, so an earlier one misled the model: has the nearest point with a single reading
    /// measured again.
    fn suspect_neighbour(&mut self, point: usize) {
        let space = &self.log.space;
        let others = (0..space.points().len()).filter(|other| *other != point);
        let single = others.filter(|other| self.log.readings(*other).len() == 1);
        let suspect = single.min_by(|a, b| {
            let distance = |other: &usize| space.distance(point, *other);
            distance(a).total_cmp(&distance(b))
        });
        if let Some(suspect) = suspect {
            self.surprises.points.push(suspect);
            self.surprises.unconfirmed = Some(suspect);
            self.surprises.is_suspect = true;
        }
    }
}

/// The logarithms of the ratios of two outcomes' times and energies.
fn log_ratios(outcome: &Outcome, to: &Outcome) -> Option<LogRatios> {
    Some([
        libm::log(outcome.time.get() / to.time.get()),
        libm::log(outcome.energy?.get() / to.energy?.get()),
    ])
}
