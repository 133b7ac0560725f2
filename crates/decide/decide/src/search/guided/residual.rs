//! How far the truth lies from a smooth model: processes over the places.

use crate::search::Space;

/// A residual of time and of average power; that of energy is their sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Residual {
    /// Of the smooth part, as a share.
    pub(super) smooth: f64,
    /// Of the part that differs from place to place, as a share.
    pub(super) rough: f64,
}

/// Of the smooth part, as a share of a knob's range.
const LENGTH: f64 = 0.22;
/// The reference itself is measured with noise, and all is relative to it.
const OF_SCALE: f64 = 0.01;
/// Keeps matrices invertible.
const JITTER: f64 = 1e-9;

/// How alike places are.
pub(super) struct Likeness {
    count: usize,
    /// Of the smooth part: rows one after another.
    smooth: Vec<f64>,
}

impl Likeness {
    pub(super) fn new(space: &Space, places: &[usize]) -> Self {
        let ranges = ranges(space);
        let pairs = places
            .iter()
            .flat_map(|a| places.iter().map(move |b| (*a, *b)));
        Self {
            count: places.len(),
            smooth: pairs.map(|(a, b)| alike(space, &ranges, a, b)).collect(),
        }
    }
}

impl Residual {
    /// Between all places, time first and then energy: rows one after another.
    pub(super) fn covariance(&self, likeness: &Likeness) -> Vec<f64> {
        let count = likeness.count;
        let mut matrix = vec![0.0; 4 * count * count];
        for row in 0..count {
            for column in 0..count {
                let pair = row * count + column;
                let same = f64::from(u8::from(row == column));
                let smooth = self.smooth * self.smooth * likeness.smooth[pair];
                let rough = self.rough * self.rough * same;
                let time = smooth + rough + OF_SCALE * OF_SCALE;
                // Noise of time is noise of energy; power is steadier.
                let power = smooth + 0.5 * rough + OF_SCALE * OF_SCALE;
                let mut put = |row: usize, column: usize, value: f64| {
                    matrix[row * 2 * count + column] = value;
                };
                put(row, column, time + JITTER * same);
                put(row, count + column, time);
                put(count + row, column, time);
                put(count + row, count + column, time + power + JITTER * same);
            }
        }
        matrix
    }
}

/// In the smooth part.
fn alike(space: &Space, ranges: &[f64], a: usize, b: usize) -> f64 {
    let (a, b) = (&space.places()[a], &space.places()[b]);
    let knobs = ranges.iter().enumerate();
    knobs
        .map(|(knob, range)| matern((a[knob] - b[knob]).abs() / range / LENGTH))
        .product()
}

/// Of each knob's values.
fn ranges(space: &Space) -> Vec<f64> {
    (0..space.knobs().len())
        .map(|knob| {
            let values = space.places().iter().map(|place| place[knob]);
            let low = values.clone().fold(f64::INFINITY, f64::min);
            let high = values.fold(f64::NEG_INFINITY, f64::max);
            if high > low { high - low } else { 1.0 }
        })
        .collect()
}

/// Matérn's covariance with two derivatives.
pub(super) fn matern(distance: f64) -> f64 {
    let x = libm::sqrt(5.0) * distance;
    (1.0 + x + x * x / 3.0) * libm::exp(-x)
}
