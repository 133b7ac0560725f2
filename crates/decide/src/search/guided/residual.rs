//! How far the truth lies from a smooth model: processes over the places.

use crate::search::{Knob, Space};

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
/// Of one level against another, where a level is a setting of its own kind such as a batch size.
const OF_LEVEL: f64 = 0.5;
/// The reference itself is measured with noise, and all is relative to it.
const OF_SCALE: f64 = 0.01;
/// Keeps matrices invertible.
const JITTER: f64 = 1e-9;

/// How alike places are.
pub(super) struct Likeness {
    count: usize,
    /// Of the smooth part: rows one after another.
    smooth: Vec<f64>,
    /// Of what all places have in common.
    common: Vec<f64>,
}

impl Likeness {
    pub(super) fn new(space: &Space, places: &[usize]) -> Self {
        let scales = scales(space);
        let (smooth, common) = places
            .iter()
            .flat_map(|a| places.iter().map(move |b| (*a, *b)))
            .map(|(a, b)| alike(space, &scales, a, b))
            .unzip();
        Self {
            count: places.len(),
            smooth,
            common,
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
                let time = smooth + rough + likeness.common[pair];
                // Noise of time is noise of energy; power is steadier.
                let power = smooth + 0.5 * rough + likeness.common[pair];
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

/// In the smooth part, and in what is common.
fn alike(space: &Space, scales: &[Scale], a: usize, b: usize) -> (f64, f64) {
    let (a, b) = (&space.places()[a], &space.places()[b]);
    let mut alike = 1.0;
    let mut of_level = 1.0;
    for (knob, scale) in scales.iter().enumerate() {
        let near = matern(scale.distance(a[knob], b[knob]) / LENGTH);
        alike *= near;
        if scale.is_level {
            of_level *= near;
        }
    }
    let has_levels = scales.iter().any(|scale| scale.is_level);
    let common = match has_levels {
        true => OF_SCALE * OF_SCALE + OF_LEVEL * OF_LEVEL * of_level,
        false => OF_SCALE * OF_SCALE,
    };
    (alike, common)
}

/// A knob's values mapped to 0 to 1.
struct Scale {
    range: f64,
    logarithmic: bool,
    is_level: bool,
}

impl Scale {
    fn distance(&self, a: f64, b: f64) -> f64 {
        let of = |value: f64| match self.logarithmic {
            true => libm::log(value),
            false => value,
        };
        (of(a) - of(b)).abs() / self.range
    }
}

fn scales(space: &Space) -> Vec<Scale> {
    let knobs = space.knobs().iter().enumerate();
    knobs
        .map(|(index, knob)| {
            let values = space.places().iter().map(|place| place[index]);
            let low = values.clone().fold(f64::INFINITY, f64::min);
            let high = values.fold(f64::NEG_INFINITY, f64::max);
            let is_level = *knob == Knob::Level;
            let logarithmic = is_level && low > 0.0;
            let range = match logarithmic {
                true => libm::log(high / low),
                false => high - low,
            };
            Scale {
                range: if range > 0.0 { range } else { 1.0 },
                logarithmic,
                is_level,
            }
        })
        .collect()
}

/// Matérn's covariance with two derivatives.
fn matern(distance: f64) -> f64 {
    let x = libm::sqrt(5.0) * distance;
    (1.0 + x + x * x / 3.0) * libm::exp(-x)
}
