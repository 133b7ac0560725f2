//! A Kalman filter that remembers the energy at chosen moments.
//!
//! The state is `(E, p, f)` of [`Process`], the buffer's lasting error against the counter, and copies of `E` taken at chosen moments.
//! Whatever a sensor shows is a difference of such copies (a counter, a mean over a window) or `f` (the
//! buffer), so one filter takes them all, and the difference of the copies taken at a window's two ends is
//! the window's energy with its variance, given all that was read before, in and after it.

use super::process::{Move, Process};

const ENERGY: usize = 0;
const POWER: usize = 1;
const FILTERED: usize = 2;
const OFFSET: usize = 3;
const COPIES: usize = 4;

/// A place that keeps the energy of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(usize);

impl Place {
    pub const fn new(index: usize) -> Self {
        Self(COPIES + index)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Filter {
    size: usize,
    mean: Vec<f64>,
    covariance: Vec<f64>,
    gain: Vec<f64>,
}

/// How far an observation was from what was expected, and the variance of that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Surprise {
    pub distance: f64,
    pub variance: f64,
}

impl Filter {
    /// `offset` is the deviation, in watts, of what the buffer shows too much or too little all the time.
    pub fn new(process: &Process, places: usize, offset: f64) -> Self {
        let size = COPIES + places;
        let mut filter = Self {
            size,
            mean: vec![0.0; size],
            covariance: vec![0.0; size * size],
            gain: vec![0.0; size],
        };
        filter.covariance[OFFSET * size + OFFSET] = offset * offset;
        let (pp, pf, ff) = process.stationary();
        filter.covariance[POWER * size + POWER] = pp;
        filter.covariance[POWER * size + FILTERED] = pf;
        filter.covariance[FILTERED * size + POWER] = pf;
        filter.covariance[FILTERED * size + FILTERED] = ff;
        filter
    }

    /// Lets time pass.
    pub fn pass(&mut self, by: &Move) {
        let n = self.size;
        let [e, p, f] = [self.mean[0], self.mean[1], self.mean[2]];
        self.mean[ENERGY] = e + by.energy + by.energy_by_power * p;
        self.mean[POWER] = by.power * p;
        self.mean[FILTERED] = by.filtered_by_power * p + by.filtered * f;
        for column in 0..n {
            let e = self.covariance[column];
            let p = self.covariance[n + column];
            let f = self.covariance[2 * n + column];
            self.covariance[column] = e + by.energy_by_power * p;
            self.covariance[n + column] = by.power * p;
            self.covariance[2 * n + column] = by.filtered_by_power * p + by.filtered * f;
        }
        for row in 0..n {
            let at = row * n;
            let [e, p, f] = [
                self.covariance[at],
                self.covariance[at + 1],
                self.covariance[at + 2],
            ];
            self.covariance[at] = e + by.energy_by_power * p;
            self.covariance[at + 1] = by.power * p;
            self.covariance[at + 2] = by.filtered_by_power * p + by.filtered * f;
        }
        let [ee, ep, ef, pp, pf, ff] = by.noise;
        for (row, values) in [[ee, ep, ef], [ep, pp, pf], [ef, pf, ff]]
            .iter()
            .enumerate()
        {
            for (column, value) in values.iter().enumerate() {
                self.covariance[row * n + column] += value;
            }
        }
    }

    /// Keeps the present energy; `blur` is the variance with which it is what will be compared with.
    pub fn keep(&mut self, place: Place, blur: f64) {
        let n = self.size;
        self.mean[place.0] = self.mean[ENERGY];
        for column in 0..n {
            self.covariance[place.0 * n + column] = self.covariance[column];
        }
        for row in 0..n {
            self.covariance[row * n + place.0] = self.covariance[row * n];
        }
        self.covariance[place.0 * n + place.0] = self.covariance[0] + blur;
    }

    /// The buffer shows so much power above the mean.
    pub fn see_filtered(&mut self, power: f64, variance: f64) -> Surprise {
        self.see(&[(FILTERED, 1.0), (OFFSET, 1.0)], power, variance)
    }

    /// So much energy was drawn since it was kept.
    pub fn see_energy_since(&mut self, place: Place, energy: f64, variance: f64) -> Surprise {
        self.see(&[(ENERGY, 1.0), (place.0, -1.0)], energy, variance)
    }

    fn see(&mut self, what: &[(usize, f64)], value: f64, variance: f64) -> Surprise {
        let n = self.size;
        let expected: f64 = what.iter().map(|(at, by)| by * self.mean[*at]).sum();
        for row in 0..n {
            let line = &self.covariance[row * n..(row + 1) * n];
            self.gain[row] = what.iter().map(|(at, by)| by * line[*at]).sum();
        }
        let spread: f64 = what.iter().map(|(at, by)| by * self.gain[*at]).sum();
        let surprise = Surprise {
            distance: value - expected,
            variance: spread.max(0.0) + variance,
        };
        if surprise.variance <= 0.0 || spread <= 0.0 {
            return surprise;
        }
        for row in 0..n {
            let share = self.gain[row] / surprise.variance;
            self.mean[row] += share * surprise.distance;
            for column in 0..n {
                self.covariance[row * n + column] -= share * self.gain[column];
            }
        }
        surprise
    }

    /// The energy between two moments, and its variance.
    pub fn between(&self, begin: Place, end: Place) -> (f64, f64) {
        let n = self.size;
        let (b, e) = (begin.0, end.0);
        let variance = self.covariance[b * n + b] + self.covariance[e * n + e]
            - self.covariance[b * n + e]
            - self.covariance[e * n + b];
        (self.mean[e] - self.mean[b], variance.max(0.0))
    }
}
