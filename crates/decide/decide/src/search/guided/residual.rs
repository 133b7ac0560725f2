//! Residuals: the differences between the true curve and a workload's curve, modelled as Gaussian processes over the
//! points.

use sweetspot_stats::matern;

use crate::search::SearchSpace;

/// A residual process: the standard deviations of log time and of log power around a workload's curve. The residual of
/// log energy is the sum of the two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Residual {
    /// The standard deviation of the part that is correlated between nearby points; 0.01 is 1 % of the value.
    pub(super) smooth: f64,
    /// The standard deviation of the part that is independent at each point; 0.01 is 1 % of the value.
    pub(super) rough: f64,
}

/// The correlation length of the smooth residual, as a share of a knob's range.
const CORRELATION_LENGTH: f64 = 0.22;
/// The standard deviation of the measurement of the reference, as a share. An error there shifts all points, because
/// all values are relative to the reference.
const REFERENCE_DEVIATION: f64 = 0.01;
/// A small term that is added to the diagonal of a covariance matrix to make it invertible.
const JITTER: f64 = 1e-9;

/// The correlation of the smooth residual between every two points.
pub(super) struct Correlation {
    count: usize,
    /// The correlation matrix, row by row.
    matrix: Vec<f64>,
}

impl Correlation {
    pub(super) fn new(space: &SearchSpace, points: &[usize]) -> Self {
        let ranges = ranges(space);
        let pairs = points
            .iter()
            .flat_map(|a| points.iter().map(move |b| (*a, *b)));
        Self {
            count: points.len(),
            matrix: pairs
                .map(|(a, b)| point_correlation(space, &ranges, a, b))
                .collect(),
        }
    }
}

impl Residual {
    /// The covariance matrix of the residuals in row-major order: the log times at all points, then the log energies.
    pub(super) fn covariance(&self, correlation: &Correlation) -> Vec<f64> {
        let count = correlation.count;
        let mut matrix = vec![0.0; 4 * count * count];
        for row in 0..count {
            for column in 0..count {
                let pair = row * count + column;
                let same = f64::from(u8::from(row == column));
                let smooth = self.smooth * self.smooth * correlation.matrix[pair];
                let rough = self.rough * self.rough * same;
                let time = smooth + rough + REFERENCE_DEVIATION * REFERENCE_DEVIATION;
                // The noise of the time is contained in the energy; the power itself varies less.
                let power = smooth + 0.5 * rough + REFERENCE_DEVIATION * REFERENCE_DEVIATION;
                let mut set = |row: usize, column: usize, value: f64| {
                    matrix[row * 2 * count + column] = value;
                };
                set(row, column, time + JITTER * same);
                set(row, count + column, time);
                set(count + row, column, time);
                set(count + row, count + column, time + power + JITTER * same);
            }
        }
        matrix
    }
}

/// The distances over which deviations are correlated, for each knob.
pub(super) fn correlation_lengths(space: &SearchSpace) -> Vec<f64> {
    let ranges = ranges(space).into_iter();
    ranges.map(|range| range * CORRELATION_LENGTH).collect()
}

/// The correlation of two points: the product of their correlations along each knob.
fn point_correlation(space: &SearchSpace, ranges: &[f64], a: usize, b: usize) -> f64 {
    let (a, b) = (&space.points()[a], &space.points()[b]);
    let knobs = ranges.iter().enumerate();
    knobs
        .map(|(knob, range)| matern((a[knob] - b[knob]).abs() / range / CORRELATION_LENGTH))
        .product()
}

/// The difference between the highest and the lowest value of each knob; 1 if all values are equal.
fn ranges(space: &SearchSpace) -> Vec<f64> {
    (0..space.knobs().len())
        .map(|knob| {
            let values = space.points().iter().map(|point| point[knob]);
            let low = values.clone().fold(f64::INFINITY, f64::min);
            let high = values.fold(f64::NEG_INFINITY, f64::max);
            if high > low { high - low } else { 1.0 }
        })
        .collect()
}
