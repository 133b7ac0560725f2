//! The objective at every point in every sample of the posterior, and the expected gain of another evaluation.

use sweetspot_quantity::{Joules, Seconds};
use sweetspot_stats::Seed;

use crate::search::Noise;
use crate::{Basis, Criteria, Limit, Objective, Outcome};

/// The objective as a cost (less is better), for every point in every sample of the posterior.
pub(super) struct ObjectiveSamples {
    points: usize,
    /// Whether the costs are shares rather than logarithms.
    is_share: bool,
    /// The cost of every point in the first sample, then in the second one, and so on. A cost is the logarithm of the
    /// objective's value: differences are then relative, as regrets are, and the few possible workloads that are many
    /// times worse at a point do not hide what the others say about it.
    costs: Vec<f64>,
    means: Vec<f64>,
    variances: Vec<f64>,
    /// For each point, the index of its level if that level has no measurements yet; such a point cannot be
    /// recommended.
    untried_levels: Vec<Option<usize>>,
}

/// The cost that is added if a point breaks a limit, about 5 % of the reference's value.
const LIMIT_PENALTY: f64 = 0.05;

impl ObjectiveSamples {
    /// Computes the costs from posterior samples of time and energy, which are log ratios to the point with the index
    /// `reference`.
    pub(super) fn new(
        samples: &[Vec<f64>],
        reference: usize,
        of_reference: &Outcome,
        criteria: &Criteria,
        limits: &[&Limit],
        is_excluded: &[bool],
        untried_levels: Vec<Option<usize>>,
    ) -> Option<Self> {
        let points = samples.first()?.len() / 2;
        let mut costs = Vec::with_capacity(samples.len() * points);
        let mut outcome = of_reference.clone();
        let mut at_reference = of_reference.clone();
        let (time, energy) = (of_reference.time.get(), of_reference.energy?.get());
        let set = |outcome: &mut Outcome, sample: &[f64], point: usize| {
            outcome.time = Seconds::new(time * libm::exp(sample[point]));
            outcome.energy = Some(Joules::new(energy * libm::exp(sample[points + point])));
        };
        for sample in samples {
            set(&mut at_reference, sample, reference);
            let basis = Basis {
                reference: Some(&at_reference),
                tariff: &criteria.tariff,
            };
            let reference_cost = relative_cost(criteria, &at_reference, basis)?;
            for (point, is_excluded) in is_excluded.iter().enumerate() {
                set(&mut outcome, sample, point);
                let own = relative_cost(criteria, &outcome, basis)?;
                let meets = |limit: &&Limit| limit.check(&outcome, basis).is_ok();
                let is_allowed = !is_excluded && limits.iter().all(meets);
                costs.push(match is_allowed {
                    true => own,
                    false => reference_cost.max(own) + LIMIT_PENALTY,
                });
            }
        }
        let means = mean_over_samples(&costs, points, |cost, _| cost);
        let variances =
            mean_over_samples(&costs, points, |cost, point| (cost - means[point]).powi(2));
        Some(Self {
            points,
            is_share: is_share(criteria),
            costs,
            means,
            variances,
            untried_levels,
        })
    }

    /// The share of the objective's value to which a difference of costs corresponds.
    fn share(&self, difference: f64) -> f64 {
        match self.is_share {
            true => difference,
            false => libm::expm1(difference),
        }
    }

    /// The number of points.
    pub(super) const fn points(&self) -> usize {
        self.points
    }

    /// The point with the least expected cost, among the levels that have measurements.
    pub(super) fn best(&self) -> usize {
        let order = |a: &usize, b: &usize| self.means[*a].total_cmp(&self.means[*b]);
        let tried = (0..self.points).filter(|point| self.untried_levels[*point].is_none());
        tried.min_by(order).unwrap_or(0)
    }

    /// By how much the expected cost of a point exceeds that of the point `than`, as a share of the latter.
    pub(super) fn relative_loss(&self, point: usize, than: usize) -> f64 {
        self.share(self.means[point] - self.means[than])
    }

    /// For each sample, by how much the cost of a point exceeds the least cost of all points, as a share of the
    /// least cost.
    pub(super) fn regrets(&self, point: usize) -> Vec<f64> {
        let samples = self.costs.chunks_exact(self.points);
        samples
            .map(|sample| {
                let best = sample.iter().copied().fold(f64::INFINITY, f64::min);
                self.share(sample[point] - best)
            })
            .collect()
    }

    /// The variance of each point's cost over the samples.
    pub(super) fn variances(&self) -> &[f64] {
        &self.variances
    }

    /// The knowledge gradient of each point: by how much one more evaluation of the point is expected to lower the
    /// least expected cost of all points, as a share of that cost.
    pub(super) fn knowledge_gradients(&self, noise: f64, seed: Seed) -> Vec<f64> {
        let samples: Vec<&[f64]> = self.costs.chunks_exact(self.points).collect();
        let count = samples.len() as f64;
        let errors: Vec<f64> = (0..samples.len())
            .map(|number| noise * seed.number(number as u64).normal())
            .collect();
        let now = self.means[self.best()];
        let mut slopes = vec![0.0; self.points];
        let gain = |point: usize| {
            let mean = self.means[point];
            let all = self.variances[point] + noise.powi(2);
            if all <= 0.0 {
                return 0.0;
            }
            slopes.fill(0.0);
            for sample in &samples {
                let here = (sample[point] - mean) / (count * all);
                let values = sample.iter().zip(&self.means);
                for (slope, (value, mean)) in slopes.iter_mut().zip(values) {
                    *slope += here * (value - mean);
                }
            }
            let after = samples.iter().zip(&errors).map(|(sample, error)| {
                let surprise = sample[point] + error - mean;
                let means = self.means.iter().zip(&slopes).zip(&self.untried_levels);
                means
                    .filter(|(_, untried)| {
                        untried.is_none() || **untried == self.untried_levels[point]
                    })
                    .map(|((mean, slope), _)| mean + slope * surprise)
                    .fold(f64::INFINITY, f64::min)
            });
            now - after.sum::<f64>() / count
        };
        (0..self.points).map(gain).collect()
    }

    /// The knowledge gradient of each point under limits. The cost then includes a penalty for broken limits, so an
    /// evaluation is treated as a measurement of time and energy rather than of the cost.
    pub(super) fn knowledge_gradients_with_limits(
        &self,
        samples: &[Vec<f64>],
        noise: Noise,
        seed: Seed,
    ) -> Vec<f64> {
        let count = samples.len() as f64;
        let normals = |label: &str| -> Vec<f64> {
            let seed = seed.label(label);
            (0..samples.len())
                .map(|number| seed.number(number as u64).normal())
                .collect()
        };
        let errors = [normals("time"), normals("energy")];
        let now = self.means[self.best()];
        let mut slopes = vec![[0.0; 2]; self.points];
        let gain = |point: usize| {
            let columns = [point, self.points + point];
            let means =
                columns.map(|c| samples.iter().map(|sample| sample[c]).sum::<f64>() / count);
            let deviation =
                |sample: &[f64]| [sample[columns[0]] - means[0], sample[columns[1]] - means[1]];
            let (mut a, mut b, mut c) = (noise.time.powi(2), 0.0, noise.energy.powi(2));
            for sample in samples {
                let [time, energy] = deviation(sample);
                a += time * time / count;
                b += time * energy / count;
                c += energy * energy / count;
            }
            let determinant = a * c - b * b;
            if determinant <= f64::MIN_POSITIVE {
                return 0.0;
            }
            slopes.fill([0.0; 2]);
            for (sample, values) in samples.iter().zip(self.costs.chunks_exact(self.points)) {
                let [time, energy] = deviation(sample);
                let along = [
                    (c * time - b * energy) / determinant / count,
                    (a * energy - b * time) / determinant / count,
                ];
                for (slope, (value, mean)) in slopes.iter_mut().zip(values.iter().zip(&self.means))
                {
                    slope[0] += along[0] * (value - mean);
                    slope[1] += along[1] * (value - mean);
                }
            }
            let after = samples.iter().enumerate().map(|(number, sample)| {
                let [time, energy] = deviation(sample);
                let time = time + noise.time * errors[0][number];
                let energy = energy + noise.energy * errors[1][number];
                let points = self.means.iter().zip(&slopes).zip(&self.untried_levels);
                points
                    .filter(|(_, untried)| {
                        untried.is_none() || **untried == self.untried_levels[point]
                    })
                    .map(|((mean, slope), _)| mean + slope[0] * time + slope[1] * energy)
                    .fold(f64::INFINITY, f64::min)
            });
            now - after.sum::<f64>() / count
        };
        (0..self.points).map(gain).collect()
    }
}

/// The standard deviation of the objective, as a share, that results from the noise of time and energy.
pub(super) fn objective_noise(criteria: &Criteria, outcome: &Outcome, noise: Noise) -> Option<f64> {
    /// The relative change of time or energy for the numerical derivative.
    const STEP: f64 = 0.01;
    let basis = Basis {
        reference: Some(outcome),
        tariff: &criteria.tariff,
    };
    let value = cost(criteria, outcome, basis)?;
    let mut slower = outcome.clone();
    slower.time = outcome.time * (1.0 + STEP);
    let mut more_energy = outcome.clone();
    more_energy.energy = outcome.energy.map(|energy| energy * (1.0 + STEP));
    let slope = |outcome: &Outcome| Some((cost(criteria, outcome, basis)? - value) / STEP);
    let (time, energy) = (
        slope(&slower)? * noise.time,
        slope(&more_energy)? * noise.energy,
    );
    let size = if is_share(criteria) { 1.0 } else { value.abs() };
    Some(libm::hypot(time, energy) / size.max(f64::MIN_POSITIVE))
}

/// Whether the objective's value is a share of the reference's already: `gain-minus-loss` is, and it may be near 0.
fn is_share(criteria: &Criteria) -> bool {
    matches!(criteria.objective, Objective::GainMinusLoss)
}

/// The objective's value for an outcome as a cost (less is better); `None` if the objective has no value.
fn cost(criteria: &Criteria, outcome: &Outcome, basis: Basis<'_>) -> Option<f64> {
    let value = criteria.objective.value(outcome, basis).ok()?;
    Some(criteria.objective.direction().as_cost(value))
}

/// The cost on a scale on which differences are relative: the logarithm of the objective's value, or the value itself
/// if it is a share.
fn relative_cost(criteria: &Criteria, outcome: &Outcome, basis: Basis<'_>) -> Option<f64> {
    let cost = cost(criteria, outcome, basis)?;
    if is_share(criteria) {
        return Some(cost);
    }
    let logarithm = libm::log(cost.abs().max(f64::MIN_POSITIVE));
    Some(if cost < 0.0 { -logarithm } else { logarithm })
}

/// For each point, the mean of `function(value, point)` over the samples; a row of `values` is one sample.
fn mean_over_samples(
    values: &[f64],
    points: usize,
    function: impl Fn(f64, usize) -> f64,
) -> Vec<f64> {
    let rows = values.chunks_exact(points);
    let count = rows.len() as f64;
    let mut means = vec![0.0; points];
    for row in rows {
        for (point, (mean, value)) in means.iter_mut().zip(row).enumerate() {
            *mean += function(*value, point) / count;
        }
    }
    means
}
