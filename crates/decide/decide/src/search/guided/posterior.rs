//! The posterior of time and energy at every point, given the measurements.
//!
//! The posterior is a mixture of curves, each with a Gaussian process of residuals around it. The weight of each
//! pair of curve and residual process follows from how well the pair explains the measurements.

use std::rc::Rc;

use sweetspot_stats::Cholesky;

use crate::search::Noise;

/// The natural logarithms of two ratios: time and energy, each relative to the reference.
pub(super) type LogRatios = [f64; 2];

/// A component of the mixture: one residual process, and the curves around which it varies.
pub(super) struct Component {
    /// The natural logarithm of the prior weight of each curve.
    pub(super) log_weights: Vec<f64>,
    /// For each curve, the values at the measured points.
    pub(super) curves_at_measurements: Rc<[Vec<LogRatios>]>,
    /// The covariance matrix of the residuals in row-major order: the times at all points, then the energies at all
    /// points.
    pub(super) covariance: Vec<f64>,
    /// The ratio of the true noise of evaluations to their assumed noise.
    pub(super) noise_factor: f64,
}

/// The measured time and energy of a point, relative to the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measurement {
    /// The position of the point among the active points.
    pub(super) point: usize,
    pub(super) log_ratios: LogRatios,
    /// The relative standard deviations of the measured time and energy.
    pub(super) noise: Noise,
}

/// One random sample of the posterior: a curve plus residuals.
pub(super) struct Sample {
    /// The index of the curve to which the residuals are added.
    pub(super) curve: usize,
    /// The differences from the curve: the times at every point, then the energies.
    pub(super) residuals: Vec<f64>,
}

/// The posterior weights are flattened until the effective number of curves is at least this.
const MIN_EFFECTIVE_CURVES: f64 = 10.0;

/// The posterior: the components of the mixture, weighted by how well they explain the measurements.
pub(super) struct Posterior<'a> {
    components: Vec<WeightedComponent<'a>>,
    points: usize,
}

impl<'a> Posterior<'a> {
    pub(super) fn new(
        components: &'a [Component],
        measurements: &'a [Measurement],
        points: usize,
    ) -> Self {
        Self {
            components: components
                .iter()
                .filter_map(|component| WeightedComponent::new(component, measurements, points))
                .collect(),
            points,
        }
    }

    /// For each pair of a component and a curve, by index, the logarithm of its posterior weight.
    pub(super) fn log_weights(&self) -> Vec<((usize, usize), f64)> {
        let components = self.components.iter().enumerate();
        components
            .flat_map(|(number, component)| {
                let curves = component.log_weights.iter().enumerate();
                curves.map(move |(curve, weight)| ((number, curve), *weight))
            })
            .collect()
    }

    /// The residuals of the measurements from a curve, multiplied by the inverse of their covariance: times first, then
    /// energies. The expected residual at any point is their sum, weighted by the point's covariances with the
    /// measurements.
    pub(super) fn residual_weights(&self, component: usize, curve: usize) -> Option<Vec<f64>> {
        let weighted = self.components.get(component)?;
        let mut difference = vec![0.0; 2 * weighted.measurements.len()];
        set_difference(
            &mut difference,
            weighted.measurements,
            weighted.component.curves_at_measurements.get(curve)?,
        );
        weighted.measured_cholesky.solve(&mut difference);
        Some(difference)
    }

    /// The log weights, flattened until at least [`MIN_EFFECTIVE_CURVES`] curves matter. The curves are a sparse sample
    /// of all possible ones, so it is partly chance which of them explains the measurements best.
    fn tempered_log_weights(&self) -> Vec<((usize, usize), f64)> {
        let mut weights = self.log_weights();
        let curves = self
            .components
            .iter()
            .map(|component| component.log_weights.len());
        let mut by_curve = vec![Vec::new(); curves.max().unwrap_or(0)];
        for ((_, curve), weight) in &weights {
            by_curve[*curve].push(*weight);
        }
        let by_curve: Vec<f64> = by_curve.iter().map(|all| log_sum_exp(all)).collect();
        let best = by_curve.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let effective_count = |exponent: f64| {
            let (sum, squares) = by_curve.iter().fold((0.0, 0.0), |(sum, squares), weight| {
                let share = libm::exp(exponent * (weight - best));
                (sum + share, squares + share * share)
            });
            sum * sum / squares
        };
        if effective_count(1.0) >= MIN_EFFECTIVE_CURVES {
            return weights;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..10 {
            let middle = 0.5 * (low + high);
            match effective_count(middle) >= MIN_EFFECTIVE_CURVES {
                true => low = middle,
                false => high = middle,
            }
        }
        for ((_, curve), weight) in &mut weights {
            *weight += (low - 1.0) * by_curve[*curve];
        }
        weights
    }

    /// Draws a sample for each row of independent standard normal draws. A row has one draw for the time and one for
    /// the energy at every point, followed by as many draws for the measurement noise.
    pub(super) fn draw_samples(&self, normals: &[Vec<f64>]) -> Option<Vec<Sample>> {
        let weights = normalised_weights(&self.tempered_log_weights(), 1.0);
        let mut priors: Vec<Option<Cholesky>> = vec![None; self.components.len()];
        // Even steps through the cumulative weights represent the mixture better than independent draws.
        let (mut next, mut cumulative) = (0, weights.first()?.1);
        let mut samples = Vec::with_capacity(normals.len());
        for (number, normal) in normals.iter().enumerate() {
            let target = (number as f64 + 0.5) / normals.len() as f64;
            while cumulative < target && next + 1 < weights.len() {
                next += 1;
                cumulative += weights[next].1;
            }
            let ((component, curve), _) = weights[next];
            let weighted = &self.components[component];
            if priors[component].is_none() {
                priors[component] = Cholesky::of(&weighted.component.covariance, 2 * self.points);
            }
            let residuals = weighted.draw_residuals(curve, priors[component].as_ref()?, normal);
            samples.push(Sample { curve, residuals });
        }
        Some(samples)
    }
}

/// The logarithm of the sum of `exp(weight)`, without overflow.
fn log_sum_exp(weights: &[f64]) -> f64 {
    let best = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    best + libm::log(weights.iter().map(|weight| libm::exp(weight - best)).sum())
}

/// Normalises the weights `exp(exponent * log_weight)` to a sum of 1 and leaves out negligible ones.
pub(super) fn normalised_weights<T: Copy>(
    log_weights: &[(T, f64)],
    exponent: f64,
) -> Vec<(T, f64)> {
    let best = log_weights.iter().map(|(_, weight)| *weight);
    let best = best.fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<(T, f64)> = log_weights
        .iter()
        .map(|(key, weight)| (*key, libm::exp(exponent * (weight - best))))
        .filter(|(_, weight)| *weight > 1e-6)
        .collect();
    let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
    for (_, weight) in &mut weights {
        *weight /= sum;
    }
    weights
}

/// Ranks the curves in `candidates` by how well they explain the measurements: pairs of a score (minus twice the log
/// posterior) and the curve's index, the best first. `columns` has the values of all curves at each measurement.
pub(super) fn rank_curves(
    covariance: &[f64],
    measurements: &[Measurement],
    points: usize,
    columns: &[&[LogRatios]],
    log_prior: &[f64],
    candidates: &[usize],
) -> Vec<(f64, usize)> {
    let rows = measured_rows(measurements, points);
    let size = rows.len();
    let mut matrix = vec![0.0; size * size];
    for (i, row) in rows.iter().enumerate() {
        for (j, column) in rows.iter().enumerate() {
            matrix[i * size + j] = covariance[row * 2 * points + column];
        }
        let noise = measurements[i % measurements.len()].noise;
        let deviation = if i < measurements.len() {
            noise.time
        } else {
            noise.energy
        };
        matrix[i * size + i] += deviation.powi(2);
    }
    let Some(measured_cholesky) = Cholesky::of(&matrix, size) else {
        return candidates.iter().map(|number| (0.0, *number)).collect();
    };
    let mut difference = vec![0.0; size];
    let mut curve = vec![[0.0; 2]; measurements.len()];
    let mut scores: Vec<(f64, usize)> = candidates
        .iter()
        .map(|&number| {
            for (pair, column) in curve.iter_mut().zip(columns) {
                *pair = column[number];
            }
            set_difference(&mut difference, measurements, &curve);
            measured_cholesky.whiten(&mut difference);
            let square: f64 = difference.iter().map(|x| x * x).sum();
            (square - 2.0 * log_prior[number], number)
        })
        .collect();
    scores.sort_by(|a, b| a.0.total_cmp(&b.0));
    scores
}

/// A component of the mixture, and the posterior weight of each of its curves.
struct WeightedComponent<'a> {
    component: &'a Component,
    measurements: &'a [Measurement],
    points: usize,
    measured_cholesky: Cholesky,
    /// The logarithm of the posterior weight of each curve.
    log_weights: Vec<f64>,
}

impl<'a> WeightedComponent<'a> {
    fn new(
        component: &'a Component,
        measurements: &'a [Measurement],
        points: usize,
    ) -> Option<Self> {
        let rows = measured_rows(measurements, points);
        let size = rows.len();
        let mut matrix = vec![0.0; size * size];
        for (i, row) in rows.iter().enumerate() {
            for (j, column) in rows.iter().enumerate() {
                matrix[i * size + j] = component.covariance[row * 2 * points + column];
            }
            matrix[i * size + i] += noise_of_row(component, measurements, i).powi(2);
        }
        let measured_cholesky = Cholesky::of(&matrix, size)?;
        let log_determinant = measured_cholesky.log_determinant();
        let mut difference = vec![0.0; size];
        let curves = component
            .curves_at_measurements
            .iter()
            .zip(&component.log_weights);
        let log_weights = curves
            .map(|(curve, weight)| {
                set_difference(&mut difference, measurements, curve);
                measured_cholesky.whiten(&mut difference);
                let square: f64 = difference.iter().map(|x| x * x).sum();
                weight - 0.5 * (square + log_determinant)
            })
            .collect();
        Some(Self {
            component,
            measurements,
            points,
            measured_cholesky,
            log_weights,
        })
    }

    /// Draws residuals given the measurements: a draw from the prior process, corrected by its difference from the
    /// measurements (Matheron's rule).
    fn draw_residuals(&self, curve: usize, prior: &Cholesky, normal: &[f64]) -> Vec<f64> {
        let points = self.points;
        let mut sample = prior.times(&normal[..2 * points]);
        let mut difference = vec![0.0; 2 * self.measurements.len()];
        set_difference(
            &mut difference,
            self.measurements,
            &self.component.curves_at_measurements[curve],
        );
        let rows = measured_rows(self.measurements, points);
        for (i, row) in rows.iter().enumerate() {
            let own = normal[2 * points + row];
            difference[i] -=
                sample[*row] + noise_of_row(self.component, self.measurements, i) * own;
        }
        self.measured_cholesky.solve(&mut difference);
        for (point, value) in sample.iter_mut().enumerate() {
            let covariance =
                &self.component.covariance[point * 2 * points..(point + 1) * 2 * points];
            let pairs = rows.iter().zip(&difference);
            *value += pairs.map(|(row, x)| covariance[*row] * x).sum::<f64>();
        }
        sample
    }
}

/// The rows of measured points in a covariance matrix of all points: the rows of the times, then of the energies.
fn measured_rows(measurements: &[Measurement], points: usize) -> Vec<usize> {
    let time = measurements.iter().map(|measurement| measurement.point);
    let energy = measurements
        .iter()
        .map(|measurement| points + measurement.point);
    time.chain(energy).collect()
}

/// The noise of the measured value in this row, as a standard deviation. The rows are all times, then all energies.
fn noise_of_row(component: &Component, measurements: &[Measurement], row: usize) -> f64 {
    let noise = measurements[row % measurements.len()].noise;
    component.noise_factor
        * match row < measurements.len() {
            true => noise.time,
            false => noise.energy,
        }
}

/// Writes the measurements minus a curve's values into `difference`: times first, then energies.
fn set_difference(difference: &mut [f64], measurements: &[Measurement], curve: &[LogRatios]) {
    let (time, energy) = difference.split_at_mut(measurements.len());
    let rows = time.iter_mut().zip(energy);
    for ((time, energy), (measurement, curve)) in rows.zip(measurements.iter().zip(curve)) {
        *time = measurement.log_ratios[0] - curve[0];
        *energy = measurement.log_ratios[1] - curve[1];
    }
}
