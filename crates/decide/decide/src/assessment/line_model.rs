//! The model of the true cost of every configuration: along a line of settings, such as power caps, neighbours are
//! alike.
//!
//! A line is a set of configurations that differ in one ordered setting only. The logarithm of the cost along a line
//! is a constant plus a Gaussian process. How large and how smooth its parts are, and where it begins to be constant, is
//! unknown; the model is a mixture of possible processes, each weighted by how well it explains the means of the runs.

use sweetspot_stats::{Cholesky, Seed};

use super::process::{self, Process};
use super::run_noise::RunNoise;

/// The place of a configuration among the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinePosition {
    /// The index of the line; configurations of different lines inform each other only about the noise of runs.
    pub line: usize,
    /// The value of the setting that varies along the line, scaled to the range from 0 to 1; absent if the values of
    /// the line have no order.
    pub position: Option<f64>,
}

impl LinePosition {
    /// A place among candidates that have no order.
    pub const WITHOUT_ORDER: Self = Self {
        line: 0,
        position: None,
    };
}

/// The smallest variance of a value, which makes matrices invertible.
const JITTER: f64 = 1e-11;
/// A component is negligible if its log weight is less than the best one's by this.
const NEGLIGIBLE: f64 = -6.0;
/// The maximum number of lines, and of configurations of a line, by which processes are weighted; more add little.
const MAX_WEIGHING_LINES: usize = 8;
/// See [`MAX_WEIGHING_LINES`].
const MAX_WEIGHING_POINTS: usize = 40;
/// A line with more configurations is treated as one without order, because the effort grows with the third power.
const MAX_SMOOTH_LINE: usize = 256;

/// One line, with the mean log cost of each of its configurations.
struct Line {
    /// The indices of the configurations.
    points: Vec<usize>,
    /// The scaled settings; absent if they have no order.
    positions: Option<Vec<f64>>,
    /// The mean log costs, relative to their average.
    means: Vec<f64>,
    /// The average that was subtracted from the means.
    average: f64,
    /// The variance of each mean, before it is multiplied by the factor of a component.
    variances: Vec<f64>,
    /// The prior variance of the line's constant.
    constant: f64,
}

/// A component of the mixture: what the lines and the noise may be like.
#[derive(Clone, Copy)]
struct Component {
    process: Process,
    /// The factor of the variances of runs.
    noise_factor: f64,
    /// The natural logarithm of the weight of the component.
    log_weight: f64,
}

/// Draws of the log costs of every configuration: the costs of all configurations in the first draw, then in the second
/// one, and so on.
pub(super) struct ModelDraws {
    /// Draws from the whole mixture.
    pub(super) values: Vec<f64>,
    /// Draws from the most likely process alone. They show how far the largest of many differences may be from its
    /// mean; in the whole mixture, differences of very different sizes are mixed.
    pub(super) of_best_process: Vec<f64>,
}

/// Draws the log cost of every configuration, `count` times, given the runs. `runs` has the log costs of the runs of
/// every configuration, at least one each.
pub(super) fn draw_costs(runs: &[Vec<f64>], places: &[LinePosition], count: usize) -> ModelDraws {
    let has_order = places.iter().any(|place| place.position.is_some());
    let noise = RunNoise::estimate(runs, has_order);
    let lines = lines(runs, places, &noise);
    let components = weighted_components(&lines, &noise, has_order);
    let best = best_process(&components);
    let of_best = components.iter().filter(|one| Some(one.process) == best);
    let of_best: Vec<Component> = of_best.copied().collect();
    let normals = normal_pairs(runs.len(), count);
    ModelDraws {
        values: draw_from(&lines, &components, runs.len(), &normals),
        of_best_process: draw_from(&lines, &of_best, runs.len(), &normals),
    }
}

/// The process with the greatest weight, with all factors of the noise.
fn best_process(components: &[Component]) -> Option<Process> {
    let most = |a: &&Component, b: &&Component| a.log_weight.total_cmp(&b.log_weight);
    components
        .iter()
        .max_by(most)
        .map(|component| component.process)
}

/// Two independent standard normal numbers for every configuration in every draw.
fn normal_pairs(points: usize, count: usize) -> Vec<[f64; 2]> {
    let seed = Seed::new(0).label("assessment");
    let numbers = 0..(points * count) as u64;
    numbers
        .map(|number| seed.number(number).normals())
        .collect()
}

/// Draws the log costs of all `points` configurations from a mixture, once for each `points` pairs of `normals`.
fn draw_from(
    lines: &[Line],
    components: &[Component],
    points: usize,
    normals: &[[f64; 2]],
) -> Vec<f64> {
    let mut values = vec![0.0; normals.len()];
    let mut rows = values
        .chunks_exact_mut(points)
        .zip(normals.chunks_exact(points));
    for (component, share) in even_shares(components, normals.len() / points) {
        let solvers: Vec<Option<LineSolver>> = lines
            .iter()
            .map(|line| LineSolver::new(line, component))
            .collect();
        for (row, normals) in rows.by_ref().take(share) {
            for (line, solver) in lines.iter().zip(&solvers) {
                match solver {
                    Some(solver) => solver.draw(line, normals, row),
                    None => line.set(row, &line.means),
                }
            }
        }
    }
    values
}

/// Groups the configurations by line, and computes their means.
fn lines(runs: &[Vec<f64>], places: &[LinePosition], noise: &RunNoise) -> Vec<Line> {
    let count = places.iter().map(|place| place.line + 1).max().unwrap_or(0);
    let mut lines = Vec::with_capacity(count);
    for number in 0..count {
        let own = places.iter().enumerate();
        let points: Vec<usize> = own
            .filter(|(_, place)| place.line == number)
            .map(|(point, _)| point)
            .collect();
        if points.is_empty() {
            continue;
        }
        let mean = |point: &usize| runs[*point].iter().sum::<f64>() / runs[*point].len() as f64;
        let means: Vec<f64> = points.iter().map(mean).collect();
        let average = means.iter().sum::<f64>() / means.len() as f64;
        let means: Vec<f64> = means.iter().map(|mean| mean - average).collect();
        let widest = means
            .iter()
            .fold(0.0, |most: f64, mean| most.max(mean.abs()));
        let positions: Option<Vec<f64>> =
            points.iter().map(|point| places[*point].position).collect();
        lines.push(Line {
            positions: positions.filter(|_| points.len() <= MAX_SMOOTH_LINE),
            variances: points
                .iter()
                .map(|point| noise.variances[*point] / runs[*point].len() as f64)
                .collect(),
            constant: (2.0 * widest).max(0.1).powi(2),
            points,
            means,
            average,
        });
    }
    lines
}

/// All components, weighted by how well they explain the means of the lines.
fn weighted_components(lines: &[Line], noise: &RunNoise, has_order: bool) -> Vec<Component> {
    let step = lines.len().div_ceil(MAX_WEIGHING_LINES).max(1);
    let lines: Vec<Line> = lines.iter().step_by(step).map(Line::thinned).collect();
    let log_likelihoods = |process: &Process, noise_factors: &[f64]| -> Vec<f64> {
        let mut sums = vec![0.0; noise_factors.len()];
        for line in &lines {
            for (sum, own) in sums
                .iter_mut()
                .zip(line.log_likelihoods(process, noise_factors))
            {
                *sum += own;
            }
        }
        sums
    };
    let processes = match has_order {
        true => process::with_order(|process| {
            let scores = log_likelihoods(process, noise.factors_for_ranking());
            scores.into_iter().fold(f64::NEG_INFINITY, f64::max)
        }),
        false => process::without_order(),
    };
    let mut components = Vec::with_capacity(processes.len() * noise.factors.len());
    for (process, probability) in processes {
        let weights = log_likelihoods(&process, &noise.factors);
        let pairs = noise.factors.iter().zip(weights);
        components.extend(pairs.map(|(noise_factor, log_likelihood)| Component {
            process,
            noise_factor: *noise_factor,
            log_weight: libm::log(probability) + log_likelihood,
        }));
    }
    components
}

/// Divides `count` draws among the components in proportion to their weights; components of negligible weight get none.
fn even_shares(components: &[Component], count: usize) -> Vec<(&Component, usize)> {
    let best = components.iter().map(|component| component.log_weight);
    let best = best.fold(f64::NEG_INFINITY, f64::max);
    let weight = |component: &Component| match component.log_weight - best {
        difference if difference < NEGLIGIBLE => 0.0,
        difference => libm::exp(difference),
    };
    let sum: f64 = components.iter().map(weight).sum();
    let (mut cumulative, mut given) = (0.0, 0);
    let mut shares = Vec::new();
    for component in components {
        cumulative += weight(component) / sum;
        let until = ((cumulative * count as f64).round() as usize).min(count);
        if until > given {
            shares.push((component, until - given));
            given = until;
        }
    }
    shares
}

impl Line {
    /// The line with at most [`MAX_WEIGHING_POINTS`] of its configurations.
    fn thinned(&self) -> Self {
        let step = self.points.len().div_ceil(MAX_WEIGHING_POINTS).max(1);
        let thin = |values: &[f64]| -> Vec<f64> { values.iter().copied().step_by(step).collect() };
        Self {
            points: self.points.iter().copied().step_by(step).collect(),
            positions: self.positions.as_ref().map(|positions| thin(positions)),
            means: thin(&self.means),
            average: self.average,
            variances: thin(&self.variances),
            constant: self.constant,
        }
    }

    /// The prior variance of each log cost if the line has no order. The only configuration of a line may have any
    /// cost.
    fn independent_variance(&self, process: &Process) -> f64 {
        match self.points.len() {
            1 => self.constant,
            _ => process.rough * process.rough + JITTER,
        }
    }

    /// The prior covariance matrix of the log costs along an ordered line, row by row.
    fn covariance(&self, positions: &[f64], process: &Process) -> Vec<f64> {
        let size = positions.len();
        let mut matrix = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..=row {
                let value = self.constant + process.covariance(positions[row], positions[column]);
                matrix[row * size + column] = value;
                matrix[column * size + row] = value;
            }
            matrix[row * size + row] += process.rough * process.rough + JITTER;
        }
        matrix
    }

    /// The Cholesky decomposition of the covariance of the measured means.
    fn measured_cholesky(&self, covariance: &[f64], noise_factor: f64) -> Option<Cholesky> {
        let size = self.points.len();
        let mut matrix = covariance.to_vec();
        for (index, variance) in self.variances.iter().enumerate() {
            matrix[index * size + index] += noise_factor * variance;
        }
        Cholesky::of(&matrix, size)
    }

    /// The natural logarithm of the probability density of the means, for each factor of the noise.
    fn log_likelihoods(&self, process: &Process, noise_factors: &[f64]) -> Vec<f64> {
        let noise_factors = noise_factors.iter();
        let Some(positions) = &self.positions else {
            let prior = self.independent_variance(process);
            let log_likelihood = |noise_factor: &f64| {
                let pairs = self.means.iter().zip(&self.variances);
                let terms = pairs.map(|(mean, variance)| {
                    let variance = prior + noise_factor * variance;
                    mean * mean / variance + libm::log(variance)
                });
                -0.5 * terms.sum::<f64>()
            };
            return noise_factors.map(log_likelihood).collect();
        };
        let covariance = self.covariance(positions, process);
        let log_likelihood = |noise_factor: &f64| {
            let Some(cholesky) = self.measured_cholesky(&covariance, *noise_factor) else {
                return f64::NEG_INFINITY;
            };
            let mut means = self.means.clone();
            cholesky.whiten(&mut means);
            let square: f64 = means.iter().map(|x| x * x).sum();
            -0.5 * (square + cholesky.log_determinant())
        };
        noise_factors.map(log_likelihood).collect()
    }

    /// Writes the log costs of the line into a draw of all configurations.
    fn set(&self, draw: &mut [f64], costs: &[f64]) {
        for (point, cost) in self.points.iter().zip(costs) {
            draw[*point] = self.average + cost;
        }
    }
}

/// Draws the log costs along a line under one component.
enum LineSolver {
    /// The configurations have no order: each has a mean and a standard deviation of its own.
    Independent(Vec<(f64, f64)>),
    /// The configurations are neighbours.
    Correlated {
        covariance: Vec<f64>,
        prior: Cholesky,
        measured: Cholesky,
        /// The standard deviation of each measured mean.
        deviations: Vec<f64>,
    },
}

impl LineSolver {
    fn new(line: &Line, component: &Component) -> Option<Self> {
        let variances = line
            .variances
            .iter()
            .map(|variance| component.noise_factor * variance);
        let Some(positions) = &line.positions else {
            let prior = line.independent_variance(&component.process);
            let pairs = line.means.iter().zip(variances);
            let posterior = pairs.map(|(mean, variance)| {
                let share = prior / (prior + variance);
                (share * mean, libm::sqrt(share * variance))
            });
            return Some(Self::Independent(posterior.collect()));
        };
        let covariance = line.covariance(positions, &component.process);
        Some(Self::Correlated {
            prior: Cholesky::of(&covariance, line.points.len())?,
            measured: line.measured_cholesky(&covariance, component.noise_factor)?,
            deviations: variances.map(libm::sqrt).collect(),
            covariance,
        })
    }

    /// Writes one draw into `row`. For neighbours it is a draw from the prior process, corrected by its difference from
    /// the measured means (Matheron's rule).
    fn draw(&self, line: &Line, normals: &[[f64; 2]], row: &mut [f64]) {
        let normals = line.points.iter().map(|point| normals[*point]);
        match self {
            Self::Independent(posterior) => {
                let pairs = posterior.iter().zip(normals);
                let costs: Vec<f64> = pairs
                    .map(|((mean, deviation), [normal, _])| mean + deviation * normal)
                    .collect();
                line.set(row, &costs);
            }
            Self::Correlated {
                covariance,
                prior,
                measured,
                deviations,
            } => {
                let size = line.points.len();
                let (process, noise): (Vec<f64>, Vec<f64>) = normals.map(Into::into).unzip();
                let mut costs = prior.times(&process);
                let mut differences: Vec<f64> = (0..size)
                    .map(|i| line.means[i] - costs[i] - deviations[i] * noise[i])
                    .collect();
                measured.solve(&mut differences);
                for (cost, covariance) in costs.iter_mut().zip(covariance.chunks_exact(size)) {
                    let pairs = covariance.iter().zip(&differences);
                    *cost += pairs.map(|(covariance, x)| covariance * x).sum::<f64>();
                }
                line.set(row, &costs);
            }
        }
    }
}
