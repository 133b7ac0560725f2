//! What is believed about time and energy at every place, given what was measured.
//!
//! A belief is a mixture: possible curves, each with a residual process around it. How far a curve is
//! trusted, and how smooth and how noisy its residual is, follows from how well it explains the
//! measurements.

use std::rc::Rc;

use sweetspot_stats::Cholesky;

use crate::search::Noise;

/// Time and energy as natural logarithms of their ratios to those at the reference.
pub(super) type Pair = [f64; 2];

/// A residual process around some curves.
pub(super) struct Family {
    /// Natural logarithm of what each of its curves is trusted with before anything is measured.
    pub(super) weights: Vec<f64>,
    /// The curves at what was measured: a row for each curve.
    pub(super) at_measured: Rc<[Vec<Pair>]>,
    /// Of the residual, between all places, time first and then energy: rows one after another.
    pub(super) covariance: Vec<f64>,
    /// How many times as noisy evaluations are as was told.
    pub(super) noise: f64,
}

/// What was measured at a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// Among those that are looked at.
    pub(super) place: usize,
    pub(super) value: Pair,
    /// Standard deviations, as was told.
    pub(super) noise: Noise,
}

/// A possible truth.
pub(super) struct Truth {
    /// Which curve of its family it is around.
    pub(super) curve: usize,
    /// Its distance to that at every place, time first and then energy.
    pub(super) values: Vec<f64>,
}

/// The fewest curves that a belief rests on.
const CURVES: f64 = 10.0;

/// Families weighed by what was measured.
pub(super) struct Belief<'a> {
    families: Vec<Weighed<'a>>,
    places: usize,
}

impl<'a> Belief<'a> {
    pub(super) fn new(families: &'a [Family], measured: &'a [Measured], places: usize) -> Self {
        Self {
            families: families
                .iter()
                .filter_map(|family| Weighed::new(family, measured, places))
                .collect(),
            places,
        }
    }

    /// The logarithm of the weight of each family and curve.
    pub(super) fn weights(&self) -> Vec<((usize, usize), f64)> {
        let families = self.families.iter().enumerate();
        families
            .flat_map(|(number, family)| {
                let curves = family.weights.iter().enumerate();
                curves.map(move |(curve, weight)| ((number, curve), *weight))
            })
            .collect()
    }

    /// The weights, softened until enough curves share them: those at hand are a thin sample, and that one of
    /// them explains the measurements better than its neighbours do is chance.
    fn even_weights(&self) -> Vec<((usize, usize), f64)> {
        let mut weights = self.weights();
        let curves = self.families.iter().map(|family| family.weights.len());
        let mut own = vec![Vec::new(); curves.max().unwrap_or(0)];
        for ((_, curve), weight) in &weights {
            own[*curve].push(*weight);
        }
        let own: Vec<f64> = own.iter().map(|weights| log_of_sum(weights)).collect();
        let best = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let count = |power: f64| {
            let (sum, squares) = own.iter().fold((0.0, 0.0), |(sum, squares), weight| {
                let share = libm::exp(power * (weight - best));
                (sum + share, squares + share * share)
            });
            sum * sum / squares
        };
        if count(1.0) >= CURVES {
            return weights;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..10 {
            let middle = 0.5 * (low + high);
            match count(middle) >= CURVES {
                true => low = middle,
                false => high = middle,
            }
        }
        for ((_, curve), weight) in &mut weights {
            *weight += (low - 1.0) * own[*curve];
        }
        weights
    }

    /// As many truths as there are rows of independent normal draws, each with a draw for every place and
    /// every measurement, of time and of energy.
    pub(super) fn truths(&self, normals: &[Vec<f64>]) -> Option<Vec<Truth>> {
        let shares = shares(&self.even_weights(), 1.0);
        let mut priors: Vec<Option<Cholesky>> = vec![None; self.families.len()];
        // Even steps through the weights represent the mixture better than independent picks do.
        let (mut next, mut below) = (0, shares.first()?.1);
        let mut truths = Vec::with_capacity(normals.len());
        for (number, normal) in normals.iter().enumerate() {
            let target = (number as f64 + 0.5) / normals.len() as f64;
            while below < target && next + 1 < shares.len() {
                next += 1;
                below += shares[next].1;
            }
            let ((family, curve), _) = shares[next];
            let weighed = &self.families[family];
            if priors[family].is_none() {
                priors[family] = Cholesky::of(&weighed.family.covariance, 2 * self.places);
            }
            let values = weighed.draw(curve, priors[family].as_ref()?, normal);
            truths.push(Truth { curve, values });
        }
        Some(truths)
    }
}

fn log_of_sum(weights: &[f64]) -> f64 {
    let best = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    best + libm::log(weights.iter().map(|weight| libm::exp(weight - best)).sum())
}

/// Shares of a whole from logarithms of weights, each to a power; what is next to nothing is left out.
pub(super) fn shares<T: Copy>(weights: &[(T, f64)], power: f64) -> Vec<(T, f64)> {
    let best = weights.iter().map(|(_, weight)| *weight);
    let best = best.fold(f64::NEG_INFINITY, f64::max);
    let mut shares: Vec<(T, f64)> = weights
        .iter()
        .map(|(own, weight)| (*own, libm::exp(power * (weight - best))))
        .filter(|(_, share)| *share > 1e-6)
        .collect();
    let all: f64 = shares.iter().map(|(_, share)| share).sum();
    for (_, share) in &mut shares {
        *share /= all;
    }
    shares
}

/// Curves in the order of how near they are to what was measured, by a residual's covariance and by how far
/// each is trusted; `columns` hold all curves at each measurement.
pub(super) fn nearest(
    covariance: &[f64],
    measured: &[Measured],
    places: usize,
    columns: &[&[Pair]],
    trust: &[f64],
    alive: &[usize],
) -> Vec<(f64, usize)> {
    let rows = rows(measured, places);
    let size = rows.len();
    let mut matrix = vec![0.0; size * size];
    for (i, row) in rows.iter().enumerate() {
        for (j, column) in rows.iter().enumerate() {
            matrix[i * size + j] = covariance[row * 2 * places + column];
        }
        let told = measured[i % measured.len()].noise;
        let noise = if i < measured.len() {
            told.time
        } else {
            told.energy
        };
        matrix[i * size + i] += noise.powi(2);
    }
    let Some(of_measured) = Cholesky::of(&matrix, size) else {
        return alive.iter().map(|number| (0.0, *number)).collect();
    };
    let mut difference = vec![0.0; size];
    let mut curve = vec![[0.0; 2]; measured.len()];
    let mut squares: Vec<(f64, usize)> = alive
        .iter()
        .map(|&number| {
            for (pair, column) in curve.iter_mut().zip(columns) {
                *pair = column[number];
            }
            set_difference(&mut difference, measured, &curve);
            of_measured.whiten(&mut difference);
            let square: f64 = difference.iter().map(|x| x * x).sum();
            (square - 2.0 * trust[number], number)
        })
        .collect();
    squares.sort_by(|a, b| a.0.total_cmp(&b.0));
    squares
}

/// A family and what the measurements say about it.
struct Weighed<'a> {
    family: &'a Family,
    measured: &'a [Measured],
    places: usize,
    of_measured: Cholesky,
    /// Logarithm of the weight of each curve.
    weights: Vec<f64>,
}

impl<'a> Weighed<'a> {
    fn new(family: &'a Family, measured: &'a [Measured], places: usize) -> Option<Self> {
        let rows = rows(measured, places);
        let size = rows.len();
        let mut matrix = vec![0.0; size * size];
        for (i, row) in rows.iter().enumerate() {
            for (j, column) in rows.iter().enumerate() {
                matrix[i * size + j] = family.covariance[row * 2 * places + column];
            }
            matrix[i * size + i] += noise(family, measured, i).powi(2);
        }
        let of_measured = Cholesky::of(&matrix, size)?;
        let volume = of_measured.log_determinant();
        let mut difference = vec![0.0; size];
        let curves = family.at_measured.iter().zip(&family.weights);
        let weights = curves
            .map(|(curve, weight)| {
                set_difference(&mut difference, measured, curve);
                of_measured.whiten(&mut difference);
                let square: f64 = difference.iter().map(|x| x * x).sum();
                weight - 0.5 * (square + volume)
            })
            .collect();
        Some(Self {
            family,
            measured,
            places,
            of_measured,
            weights,
        })
    }

    /// A residual that agrees with the measurements: a draw of the process, corrected by what the
    /// measurements say (Matheron's rule).
    fn draw(&self, curve: usize, prior: &Cholesky, normal: &[f64]) -> Vec<f64> {
        let places = self.places;
        let mut truth = prior.times(&normal[..2 * places]);
        let mut difference = vec![0.0; 2 * self.measured.len()];
        set_difference(
            &mut difference,
            self.measured,
            &self.family.at_measured[curve],
        );
        let rows = rows(self.measured, places);
        for (i, row) in rows.iter().enumerate() {
            let own = normal[2 * places + row];
            difference[i] -= truth[*row] + noise(self.family, self.measured, i) * own;
        }
        self.of_measured.solve(&mut difference);
        for (place, value) in truth.iter_mut().enumerate() {
            let covariance = &self.family.covariance[place * 2 * places..(place + 1) * 2 * places];
            let pairs = rows.iter().zip(&difference);
            *value += pairs.map(|(row, x)| covariance[*row] * x).sum::<f64>();
        }
        truth
    }
}

/// Where the measurements stand among all values.
fn rows(measured: &[Measured], places: usize) -> Vec<usize> {
    let time = measured.iter().map(|point| point.place);
    let energy = measured.iter().map(|point| places + point.place);
    time.chain(energy).collect()
}

fn noise(family: &Family, measured: &[Measured], row: usize) -> f64 {
    let told = measured[row % measured.len()].noise;
    family.noise
        * match row < measured.len() {
            true => told.time,
            false => told.energy,
        }
}

fn set_difference(difference: &mut [f64], measured: &[Measured], curve: &[Pair]) {
    let (time, energy) = difference.split_at_mut(measured.len());
    let rows = time.iter_mut().zip(energy);
    for ((time, energy), (point, curve)) in rows.zip(measured.iter().zip(curve)) {
        *time = point.value[0] - curve[0];
        *energy = point.value[1] - curve[1];
    }
}
