//! A Kalman filter that saves the energy at chosen moments.
//!
//! The state is `(E, p, f)` of [`PowerProcess`], the buffer's constant error against the counter, and copies of
//! `E` saved at chosen moments. Every sensor shows either a difference of such copies (a counter, a mean over a
//! window) or `f` (the buffer), so one filter takes them all. The difference of the copies saved at a window's
//! two ends is the window's energy with its variance, given all readings before, in and after the window.

use super::power_process::{PowerProcess, Transition};

/// The index of the energy drawn so far, `E`, in the filter's state.
const ENERGY_INDEX: usize = 0;
/// The index of the power, `p`, in the filter's state.
const POWER_INDEX: usize = 1;
/// The index of the driver buffer's smoothed power, `f`, in the filter's state.
const FILTERED_INDEX: usize = 2;
/// The index of the driver buffer's constant error, in watts, in the filter's state.
const OFFSET_INDEX: usize = 3;
/// The index of the first saved energy in the filter's state.
const FIRST_SAVED_INDEX: usize = 4;

/// The index of a saved energy in the filter's state: the energy drawn up to a chosen moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnergySlot(usize);

impl EnergySlot {
    /// The saved energy with this index.
    pub const fn new(index: usize) -> Self {
        Self(FIRST_SAVED_INDEX + index)
    }
}

/// The state of the Kalman filter: the means and covariances of its variables.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    size: usize,
    mean: Vec<f64>,
    covariance: Vec<f64>,
    gain: Vec<f64>,
}

/// The difference between an observation and its expected value, and the variance of that difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Innovation {
    pub difference: f64,
    pub variance: f64,
}

impl Filter {
    /// Creates the filter in the stationary state of the process, with room for `saved_energies`. `offset` is
    /// the standard deviation of the driver buffer's constant error, in watts.
    pub fn new(process: &PowerProcess, saved_energies: usize, offset: f64) -> Self {
        let size = FIRST_SAVED_INDEX + saved_energies;
        let mut filter = Self {
            size,
            mean: vec![0.0; size],
            covariance: vec![0.0; size * size],
            gain: vec![0.0; size],
        };
        filter.covariance[OFFSET_INDEX * size + OFFSET_INDEX] = offset * offset;
        let (pp, pf, ff) = process.stationary();
        filter.covariance[POWER_INDEX * size + POWER_INDEX] = pp;
        filter.covariance[POWER_INDEX * size + FILTERED_INDEX] = pf;
        filter.covariance[FILTERED_INDEX * size + POWER_INDEX] = pf;
        filter.covariance[FILTERED_INDEX * size + FILTERED_INDEX] = ff;
        filter
    }

    /// Advances the filter's state in time.
    pub fn advance(&mut self, by: &Transition) {
        let n = self.size;
        let [e, p, f] = [self.mean[0], self.mean[1], self.mean[2]];
        self.mean[ENERGY_INDEX] = e + by.energy + by.energy_by_power * p;
        self.mean[POWER_INDEX] = by.power * p;
        self.mean[FILTERED_INDEX] = by.filtered_by_power * p + by.filtered * f;
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

    /// Saves the energy drawn so far in a state variable. `blur` is the additional variance, in joules
    /// squared, because the moment is uncertain.
    pub fn save_energy(&mut self, place: EnergySlot, blur: f64) {
        let n = self.size;
        self.mean[place.0] = self.mean[ENERGY_INDEX];
        for column in 0..n {
            self.covariance[place.0 * n + column] = self.covariance[column];
        }
        for row in 0..n {
            self.covariance[row * n + place.0] = self.covariance[row * n];
        }
        self.covariance[place.0 * n + place.0] = self.covariance[0] + blur;
    }

    /// Updates the state with a sample of the driver's buffer. `power` is in watts above the process's mean.
    pub fn observe_buffer(&mut self, power: f64, variance: f64) -> Innovation {
        self.observe(
            &[(FILTERED_INDEX, 1.0), (OFFSET_INDEX, 1.0)],
            power,
            variance,
        )
    }

    /// Updates the state with the energy measured since a saved moment, in joules.
    pub fn observe_energy_since(
        &mut self,
        place: EnergySlot,
        energy: f64,
        variance: f64,
    ) -> Innovation {
        self.observe(&[(ENERGY_INDEX, 1.0), (place.0, -1.0)], energy, variance)
    }

    /// Updates the state with a measured value of a linear combination of state variables; `what` lists their
    /// indices and coefficients.
    fn observe(&mut self, what: &[(usize, f64)], value: f64, variance: f64) -> Innovation {
        let n = self.size;
        let expected: f64 = what.iter().map(|(at, by)| by * self.mean[*at]).sum();
        for row in 0..n {
            let line = &self.covariance[row * n..(row + 1) * n];
            self.gain[row] = what.iter().map(|(at, by)| by * line[*at]).sum();
        }
        let spread: f64 = what.iter().map(|(at, by)| by * self.gain[*at]).sum();
        let innovation = Innovation {
            difference: value - expected,
            variance: spread.max(0.0) + variance,
        };
        if innovation.variance <= 0.0 || spread <= 0.0 {
            return innovation;
        }
        for row in 0..n {
            let share = self.gain[row] / innovation.variance;
            self.mean[row] += share * innovation.difference;
            for column in 0..n {
                self.covariance[row * n + column] -= share * self.gain[column];
            }
        }
        innovation
    }

    /// The variance of the driver buffer's constant error, in watts squared.
    pub fn offset_variance(&self) -> f64 {
        self.covariance[OFFSET_INDEX * self.size + OFFSET_INDEX].max(0.0)
    }

    /// The energy between two saved moments, in joules, and its variance.
    pub fn energy_between(&self, begin: EnergySlot, end: EnergySlot) -> (f64, f64) {
        let n = self.size;
        let (b, e) = (begin.0, end.0);
        let variance = self.covariance[b * n + b] + self.covariance[e * n + e]
            - self.covariance[b * n + e]
            - self.covariance[e * n + b];
        (self.mean[e] - self.mean[b], variance.max(0.0))
    }
}
