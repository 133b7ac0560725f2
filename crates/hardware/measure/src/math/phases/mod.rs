//! Energy per phase, for phases shorter than the sensors can resolve.
//!
//! Each reading is a mixture of the phases shortly before it; many readings with different mixtures determine
//! the phases' powers. The mixture depends on the sensor's response, which is fitted together with the powers.
//! Powers are not below the lowest power seen, and with the rest they add up to the window's energy.

mod bootstrap;
mod design;
mod record;
mod result;
mod solve;
mod spans;

use sweetspot_quantity::{Joules, Seconds, Watts};

use self::design::{
    Lag, Row, means_between_steps, means_of_windows, rows_of_means, rows_of_samples,
};
pub use self::record::{PhaseRecord, PhaseSpan};
pub use self::result::{Attribution, AttributionError, PhaseEnergy, PhaseTime};
use self::solve::{NormalEquations, blocks};
pub use self::spans::Timeline;
use super::energy::{Energy, Z95};
use super::estimator::EnergyEstimator;
use super::readings::{Response, Span};
use crate::method::MethodChoice;

/// The readings separate the phases only if the smallest eigenvalue of their scaled matrix is at least this;
/// below it, the result would be noise.
const MIN_EIGENVALUE: f64 = 2e-3;
/// The minimum number of readings per phase.
const MIN_READINGS_PER_PHASE: usize = 12;
/// A phase with less than this share of the measurement window's time is not fitted: its power is assumed to
/// be the mean.
const NEGLIGIBLE_SHARE: f64 = 2e-3;
/// Candidate time constants of the buffer's response, in seconds.
const TIME_CONSTANTS: [f64; 9] = [
    0.002, 0.005, 0.008, 0.011, 0.014, 0.017, 0.020, 0.025, 0.032,
];
/// Candidate delays of the buffer's response, in seconds.
const DELAYS: [f64; 7] = [-0.004, -0.002, 0.0, 0.002, 0.004, 0.006, 0.009];
/// Alternative responses differ from the best one by these times, in seconds, in time constant and in delay.
const ALTERNATIVE_OFFSETS: [f64; 9] = [
    -0.004, -0.002, -0.001, -0.0004, 0.0, 0.0004, 0.001, 0.002, 0.004,
];
/// The length of a bootstrap block in seconds: longer than the correlation time of the residuals.
const BLOCK_SECONDS: f64 = 1.0;
/// The minimum number of bootstrap blocks; in a short measurement window the blocks are shorter.
const MIN_BLOCKS: usize = 12;

/// A candidate response of the driver's buffer, and the powers of the phases that fit the readings best under
/// it.
struct Candidate {
    lag: Option<Lag>,
    blocks: Vec<NormalEquations>,
    powers: Vec<f64>,
    squares: f64,
    rows: usize,
}

/// The inputs of the regression that do not depend on the buffer's response.
struct Problem<'a> {
    estimator: &'a EnergyEstimator<'a>,
    timeline: &'a Timeline,
    window: Span,
    /// The time of each phase, and last that of no phase, in seconds; 0 for phases that are negligible.
    times: Vec<f64>,
    /// The time of each negligible phase, in seconds; 0 for the other phases.
    negligible: Vec<f64>,
    energy: f64,
    block: f64,
    block_count: usize,
}

impl EnergyEstimator<'_> {
    /// Estimates the energy of each phase in a measurement window.
    pub fn phases(
        &self,
        marked: &PhaseRecord,
        window: &Span,
    ) -> Result<Attribution, AttributionError> {
        let total = self.energy(window, MethodChoice::Auto)?;
        let window = total.covered;
        let timeline = Timeline::new(marked, &window);
        if timeline.names.is_empty() {
            return Err(AttributionError::NoPhases);
        }
        let length = window.length().get();
        let mean = total.power().get();
        let mut times = timeline.times.clone();
        let negligible: Vec<f64> = times
            .iter_mut()
            .map(|time| match *time < NEGLIGIBLE_SHARE * length {
                true => std::mem::take(time),
                false => 0.0,
            })
            .collect();
        let block = BLOCK_SECONDS.min(length / MIN_BLOCKS as f64);
        let problem = Problem {
            estimator: self,
            timeline: &timeline.without(|phase| times[phase] == 0.0),
            window,
            energy: total.value.get() - mean * negligible.iter().sum::<f64>(),
            times,
            negligible,
            block,
            block_count: (length / block).ceil() as usize,
        };
        let (best, alternatives) = problem.fit_response()?;
        problem.reject_inseparable(&best)?;
        let deviations = problem.deviations(&best, &alternatives, total.deviation().get());
        Ok(problem.report(&best, &deviations, total))
    }
}

impl Problem<'_> {
    /// The number of unknown powers: one per phase, and one for the time outside all phases.
    fn columns(&self) -> usize {
        self.times.len()
    }

    /// The lowest power that a phase can have: the lowest that the device was seen to draw.
    fn floor(&self) -> f64 {
        self.estimator.range.lowest()
    }

    /// Finds the buffer's response under which the readings fit best, and alternatives near it with their
    /// relative likelihoods.
    fn fit_response(&self) -> Result<(Candidate, Vec<(f64, Candidate)>), AttributionError> {
        if self.estimator.trace().buffer.len() < MIN_READINGS_PER_PHASE {
            let candidate = self.try_response(None).ok_or(self.too_few_readings())?;
            return Ok((candidate, Vec::new()));
        }
        let coarse = TIME_CONSTANTS.iter().flat_map(|constant| {
            let lag = |delay: &f64| Lag {
                constant: *constant,
                delay: *delay,
            };
            DELAYS.iter().map(lag)
        });
        let candidate = coarse.filter_map(|lag| self.try_response(Some(lag)));
        let mut best = candidate.min_by(by_cost).ok_or(self.too_few_readings())?;
        let mut step = 0.0015;
        while step > 1e-5 {
            let nearer = self.neighbours(&best, &[-step, 0.0, step]);
            match nearer.into_iter().min_by(by_cost) {
                Some(better) if better.cost() < best.cost() => best = better,
                _ => step /= 2.0,
            }
        }
        // Errors of blocks are independent of each other, those of rows are not.
        let degrees = (self.block_count as f64 - self.columns() as f64).max(4.0);
        let alternatives = self
            .neighbours(&best, &ALTERNATIVE_OFFSETS)
            .into_iter()
            .map(|alternative| {
                let worse = alternative.cost() / best.cost().max(1e-12) - 1.0;
                ((-0.5 * degrees * worse.max(0.0)).exp(), alternative)
            });
        let alternatives = alternatives
            .filter(|(likelihood, _)| *likelihood > 1e-3)
            .collect();
        Ok((best, alternatives))
    }

    /// Candidates whose time constant and delay differ from those of `centre` by the values in `away`.
    fn neighbours(&self, centre: &Candidate, away: &[f64]) -> Vec<Candidate> {
        let Some(near) = centre.lag else {
            return Vec::new();
        };
        let mut candidate = Vec::new();
        for constant in away {
            for delay in away {
                let lag = Lag {
                    constant: (near.constant + constant).max(0.001),
                    delay: near.delay + delay,
                };
                candidate.extend(self.try_response(Some(lag)));
            }
        }
        candidate
    }

    /// Fits the phases' powers under one response; without a response, the buffer's samples are not used.
    fn try_response(&self, lag: Option<Lag>) -> Option<Candidate> {
        let trace = self.estimator.trace();
        let (timeline, window) = (self.timeline, &self.window);
        let steps = rows_of_means(
            timeline,
            window,
            means_between_steps(&self.estimator.steps().steps),
        );
        let mut groups: Vec<Vec<Row>> = match lag {
            Some(lag) => {
                let first = trace
                    .buffer
                    .partition_point(|sample| sample.at < window.begin);
                vec![rows_of_samples(
                    timeline,
                    window,
                    &trace.buffer[first..],
                    lag,
                )]
            }
            None if !trace.instant.is_empty() => {
                let model = &trace.model.instant;
                vec![rows_of_means(
                    timeline,
                    window,
                    means_of_windows(&trace.instant, model),
                )]
            }
            None => {
                let model = &trace.model.average;
                vec![rows_of_means(
                    timeline,
                    window,
                    means_of_windows(&trace.average, model),
                )]
            }
        };
        groups.push(steps);
        let rows: usize = groups.iter().map(Vec::len).sum();
        if rows < MIN_READINGS_PER_PHASE * self.columns() {
            return None;
        }
        // Each kind of reading is weighted by how well it fits, which is found with equal weights first.
        let mut weights = vec![1.0; groups.len()];
        for round in 0..2 {
            let mut sums = vec![NormalEquations::new(self.columns()); self.block_count];
            for (group, weight) in groups.iter().zip(&weights) {
                let parts = blocks(group, self.columns(), self.block, *weight, self.block_count);
                for (sum, part) in sums.iter_mut().zip(&parts) {
                    sum.add(part);
                }
            }
            let whole = total(&sums, self.columns());
            let powers = whole.solve(&self.times, self.energy, self.floor())?;
            if round == 1 {
                // Costs of different responses are compared on the samples alone.
                let of_samples = squared_residuals(&groups[0], &powers);
                return Some(Candidate {
                    lag,
                    blocks: sums,
                    squares: of_samples,
                    powers,
                    rows: groups[0].len().max(1),
                });
            }
            for (group, weight) in groups.iter().zip(weights.iter_mut()) {
                let mean = squared_residuals(group, &powers) / group.len().max(1) as f64;
                *weight = 1.0 / mean.max(1e-6);
            }
        }
        None
    }

    /// The error that there are too few readings for the number of phases.
    fn too_few_readings(&self) -> AttributionError {
        let trace = self.estimator.trace();
        let polled = trace.instant.len() + trace.average.len();
        AttributionError::TooFewReadings {
            readings: trace.buffer.len().max(polled),
            phases: self.columns(),
        }
    }

    /// Whether the phase is too short to be fitted.
    fn is_negligible(&self, column: usize) -> bool {
        self.times[column] == 0.0
    }

    /// The name of the phase, or "other" for the time outside all phases.
    fn name(&self, column: usize) -> String {
        let names = &self.timeline.names;
        names
            .get(column)
            .cloned()
            .unwrap_or_else(|| NO_PHASE.to_owned())
    }

    /// Returns an error if the readings cannot separate two of the phases.
    fn reject_inseparable(&self, best: &Candidate) -> Result<(), AttributionError> {
        let whole = total(&best.blocks, self.columns());
        let included: Vec<usize> = (0..self.columns())
            .filter(|column| !self.is_negligible(*column))
            .collect();
        let Some((value, first, second)) = whole.select(&included).smallest_eigenvalue() else {
            return Ok(());
        };
        if value < MIN_EIGENVALUE {
            return Err(AttributionError::Inseparable {
                first: self.name(included[first]),
                second: self.name(included[second]),
                reason: format!(
                    "the readings have only {value:.1e} of the information that independent phases would give"
                ),
            });
        }
        Ok(())
    }

    /// Creates the result from the best candidate and the standard deviations of the powers.
    fn report(&self, best: &Candidate, deviations: &[f64], total: Energy) -> Attribution {
        let mean = total.power().get();
        let phase = |column: usize| {
            let time = self.times[column] + self.negligible[column];
            let (power, half) = if self.is_negligible(column) {
                (mean, mean)
            } else {
                (best.powers[column], Z95 * deviations[column])
            };
            let (low, high) = ((power - half).max(0.0), power + half);
            PhaseEnergy {
                name: self.name(column),
                time: Seconds::new(time),
                count: self.timeline.counts.get(column).copied().unwrap_or(0),
                energy: Joules::new(power * time),
                interval95: (Joules::new(low * time), Joules::new(high * time)),
                power: Watts::new(power),
                power_interval95: (Watts::new(low), Watts::new(high)),
            }
        };
        let response = best.lag.map(|lag| Response {
            time_constant: Seconds::new(lag.constant),
            delay: Seconds::new(lag.delay),
        });
        Attribution {
            phases: (0..self.columns() - 1).map(phase).collect(),
            other: phase(self.columns() - 1),
            total,
            response,
            readings: best.rows,
            residual: Watts::new(best.cost().sqrt()),
        }
    }
}

/// The name under which the time outside all phases is reported.
const NO_PHASE: &str = "other";

impl Candidate {
    /// The mean squared difference between readings and model, in watts squared.
    fn cost(&self) -> f64 {
        self.squares / self.rows as f64
    }
}

/// Orders candidates by their mean squared residual.
fn by_cost(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    a.cost().total_cmp(&b.cost())
}

/// The sum of the blocks' normal equations.
fn total(blocks: &[NormalEquations], columns: usize) -> NormalEquations {
    blocks
        .iter()
        .fold(NormalEquations::new(columns), |mut sum, block| {
            sum.add(block);
            sum
        })
}

/// The sum of the squared differences between readings and model.
fn squared_residuals(rows: &[Row], powers: &[f64]) -> f64 {
    rows.iter()
        .map(|row| {
            let expected: f64 = row.shares.iter().zip(powers).map(|(s, p)| s * p).sum();
            (row.watts - expected).powi(2)
        })
        .sum()
}
