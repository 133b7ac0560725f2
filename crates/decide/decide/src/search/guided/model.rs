//! The model of time and energy over the knobs at one level: a set of simulated workloads with residuals around
//! them, and samples of the posterior.

use std::collections::HashMap;
use std::rc::Rc;

use sweetspot_stats::Seed;

use super::deviation::Deviation;
use super::noise_scales::{
    NoiseModel, RESIDUAL_COUNT, ROUGH_SCALES, SMOOTH_SCALES, default_residual_priors,
};
use super::posterior::{
    Component, LogRatios, Measurement, Posterior, Sample, normalised_weights, rank_curves,
};
use super::prior::{LogPriors, Prior};
use super::residual::{Correlation, Residual, correlation_lengths};
use super::workload_model::PossibleWorkloads;
use crate::search::SearchSpace;

/// The number of simulated workloads before the first subdivision.
const INITIAL_WORKLOADS: usize = 6000;
/// The maximum number of curves in the posterior; each is the curve of one of the workloads that explain the
/// measurements best.
const MAX_CURVES: usize = 1000;
/// The maximum of the number of curves times the number of measurements; it bounds memory and time.
const MAX_CURVE_VALUES: usize = 8000;
/// A curve is left out of the posterior if its score (minus twice the log posterior) exceeds the best score by more
/// than this.
const MAX_SCORE_GAP: f64 = 60.0;
/// The maximum number of simulated workloads that are still considered after a measurement.
const MAX_CANDIDATES: usize = 3000;
/// The number of simulated workloads, those with the best scores, that are subdivided after each measurement.
const SUBDIVIDED_WORKLOADS: usize = 80;
/// The number of workloads that a subdivided workload becomes, itself included.
const SUBDIVISION_PARTS: usize = 8;
/// The maximum number of rounds in which workloads are subdivided.
const MAX_SUBDIVISION_ROUNDS: usize = 8;
/// The target for the number of active points times the number of posterior samples; it bounds the computing time.
const SAMPLED_VALUES: usize = 14_000;
/// The minimum and the maximum number of posterior samples.
const SAMPLE_COUNTS: [usize; 2] = [300, 1500];

/// The model of time and energy over the knobs at one level.
pub(super) struct Model {
    workloads: PossibleWorkloads,
    /// The indices of the workloads that may still explain the measurements.
    candidates: Vec<usize>,
    log_priors: LogPriors,
    noise_model: NoiseModel,
    /// The number of rounds so far in which the best workloads were subdivided.
    rounds: usize,
    active_set: ActiveSet,
}

/// The workloads that explain an earlier study.
pub(super) struct Explanation {
    /// The logarithm of the posterior weight of each combination of a residual process and a workload.
    pub(super) log_weights: Vec<((usize, usize), f64)>,
    /// The index of the workload that explains the study best.
    pub(super) best_workload: usize,
    /// The share of the study's variation that this workload explains.
    pub(super) explained_share: f64,
    /// How the study deviates from that workload.
    pub(super) deviation: Deviation,
}

/// The points at which the posterior is sampled, and cached values that depend only on these points.
pub(super) struct ActiveSet {
    seed: Seed,
    points: Vec<usize>,
    correlation: Correlation,
    normals: Vec<Vec<f64>>,
    /// The predicted time and energy of workloads at the points, by the index of the workload.
    curves: HashMap<usize, Vec<LogRatios>>,
}

impl Model {
    /// Creates the model of a job that draws `power` watts per GPU at the reference.
    pub(super) fn new(
        space: &SearchSpace,
        power: f64,
        prior: &Prior,
        noise_model: NoiseModel,
        active_set: ActiveSet,
    ) -> Self {
        let mut workloads = PossibleWorkloads::new(space, power, INITIAL_WORKLOADS);
        for (number, deviation) in prior.curves() {
            workloads.add_study(number, deviation);
        }
        let log_priors = prior.log_priors(
            power,
            INITIAL_WORKLOADS,
            default_residual_priors(noise_model),
        );
        Self {
            workloads,
            candidates: (0..log_priors.workloads.len()).collect(),
            log_priors,
            noise_model,
            rounds: 0,
            active_set,
        }
    }

    /// Finds the candidate workloads and the models of the deviations from them that explain recorded results.
    pub(super) fn explain(
        space: &SearchSpace,
        power: f64,
        measurements: &[Measurement],
    ) -> Option<Explanation> {
        let all: Vec<usize> = (0..space.points().len()).collect();
        let points = all.len();
        let active_set = ActiveSet::without_draws(space, all, Seed::new(0));
        let prior = Prior::default();
        let mut model = Self::new(space, power, &prior, NoiseModel::Recorded, active_set);
        let (components, kept) = model.components(space, measurements);
        let posterior = Posterior::new(&components, measurements, points);
        let log_weights = posterior.log_weights();
        let best = log_weights.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let curve = best.0.1;
        let of_curve = log_weights.iter().filter(|((_, own), _)| *own == curve);
        let of_curve: Vec<((usize, usize), f64)> = of_curve.copied().collect();
        let explained_share = explained_share(
            measurements,
            &components.first()?.curves_at_measurements[curve],
        );
        let mut weights = vec![[0.0; 2]; measurements.len()];
        for ((component, curve), share) in normalised_weights(&of_curve, 1.0) {
            let residuals = posterior.residual_weights(component, curve)?;
            let (time, energy) = residuals.split_at(measurements.len());
            let smooth = SMOOTH_SCALES[component / ROUGH_SCALES.len()].0;
            let scale = share * smooth * smooth;
            for (weight, (time, energy)) in weights.iter_mut().zip(time.iter().zip(energy)) {
                // The residual of log energy is the sum of those of log time and log power.
                weight[0] += scale * (time + energy);
                weight[1] += scale * (time + 2.0 * energy);
            }
        }
        let deviation = Deviation::new(space, correlation_lengths(space), weights, power);
        let number = |((component, curve), weight)| ((component, kept[curve]), weight);
        Some(Explanation {
            best_workload: kept[curve],
            explained_share,
            deviation,
            log_weights: log_weights.into_iter().map(number).collect(),
        })
    }

    /// Draws `count` samples of the posterior. Each is a row with the logarithms of time, then of energy, at the active
    /// points, relative to the reference.
    pub(super) fn draw_samples(
        &mut self,
        space: &SearchSpace,
        active: &[usize],
        measurements: &[Measurement],
        count: usize,
    ) -> Option<Vec<Vec<f64>>> {
        if self.active_set.points != active || self.active_set.normals.len() != count {
            self.active_set = ActiveSet::new(space, active.to_vec(), count, self.active_set.seed);
        }
        let rounds = measurements
            .len()
            .saturating_sub(1)
            .min(MAX_SUBDIVISION_ROUNDS);
        while self.rounds < rounds {
            self.refine(space, measurements);
            self.rounds += 1;
        }
        let (components, kept) = self.components(space, measurements);
        let posterior = Posterior::new(&components, measurements, active.len());
        let mut samples = posterior.draw_samples(&self.active_set.normals)?;
        for Sample { curve, residuals } in &mut samples {
            let number = kept[*curve];
            let curve = self.active_set.curves.entry(number).or_insert_with(|| {
                active
                    .iter()
                    .map(|point| self.workloads.log_ratios(space, number, *point))
                    .collect()
            });
            for (index, [time, energy]) in curve.iter().enumerate() {
                residuals[index] += time;
                residuals[active.len() + index] += energy;
            }
        }
        Some(samples.into_iter().map(|sample| sample.residuals).collect())
    }

    /// Adds workloads around those that explain the measurements best. The initial workloads are a sparse sample;
    /// without further ones, the best of them would get too much weight.
    fn refine(&mut self, space: &SearchSpace, measurements: &[Measurement]) {
        let ranking = self.rank_workloads(space, measurements);
        for (_, number) in ranking.into_iter().take(SUBDIVIDED_WORKLOADS) {
            let new = self.workloads.subdivide(space, number, SUBDIVISION_PARTS);
            let log_priors = &mut self.log_priors.workloads;
            let divided = log_priors[number] - libm::log(SUBDIVISION_PARTS as f64);
            log_priors[number] = divided;
            log_priors.extend(new.clone().map(|_| divided));
            self.candidates.extend(new);
        }
    }

    /// Ranks the candidate workloads by how well they explain the measurements: pairs of score and index, the best
    /// first.
    fn rank_workloads(
        &mut self,
        space: &SearchSpace,
        measurements: &[Measurement],
    ) -> Vec<(f64, usize)> {
        let ActiveSet {
            points,
            correlation,
            ..
        } = &self.active_set;
        for measurement in measurements {
            self.workloads.add_column(space, points[measurement.point]);
        }
        let middle = Residual {
            smooth: SMOOTH_SCALES[1].0,
            rough: match self.noise_model {
                NoiseModel::Recorded => ROUGH_SCALES[1].0,
                _ => 0.0,
            },
        };
        rank_curves(
            &middle.covariance(correlation),
            measurements,
            points.len(),
            &self.columns(measurements),
            &self.log_priors.workloads,
            &self.candidates,
        )
    }

    /// For each measurement, the predictions of all workloads at its point.
    fn columns(&self, measurements: &[Measurement]) -> Vec<&[LogRatios]> {
        let points = measurements
            .iter()
            .map(|measurement| self.active_set.points[measurement.point]);
        points
            .filter_map(|point| self.workloads.column(point))
            .collect()
    }

    /// Creates one mixture component for each residual process; all share the same curves. Also returns the indices of
    /// the workloads to which the curves belong.
    fn components(
        &mut self,
        space: &SearchSpace,
        measurements: &[Measurement],
    ) -> (Vec<Component>, Vec<usize>) {
        let ranking = self.rank_workloads(space, measurements);
        let worst = ranking
            .first()
            .map_or(0.0, |(best, _)| best + MAX_SCORE_GAP);
        let kept: Vec<usize> = ranking
            .iter()
            .take(MAX_CURVES.min(MAX_CURVE_VALUES / measurements.len().max(1)))
            .take_while(|(score, _)| *score <= worst)
            .map(|(_, number)| *number)
            .collect();
        if measurements.len() > 2 {
            self.candidates = ranking
                .iter()
                .take(MAX_CANDIDATES)
                .map(|(_, number)| *number)
                .collect();
        }
        let columns = self.columns(measurements);
        let row = |number: &usize| columns.iter().map(|column| column[*number]).collect();
        let rows: Rc<[Vec<LogRatios>]> = kept.iter().map(row).collect();
        let mut components = Vec::with_capacity(RESIDUAL_COUNT);
        for (smooth, _) in SMOOTH_SCALES {
            for (scale, _) in self.noise_model.scales() {
                let (rough, noise_factor) = match self.noise_model {
                    NoiseModel::Recorded => (scale, 0.0),
                    _ => (0.0, scale),
                };
                let of_residual = self.log_priors.residuals[components.len()];
                let log_weights = kept
                    .iter()
                    .map(|number| self.log_priors.workloads[*number] + of_residual);
                components.push(Component {
                    log_weights: log_weights.collect(),
                    curves_at_measurements: Rc::clone(&rows),
                    covariance: Residual { smooth, rough }.covariance(&self.active_set.correlation),
                    noise_factor,
                });
            }
        }
        (components, kept)
    }
}

/// The share of the variation of measurements that a curve explains. In a study that no setting affects it is about 0:
/// the deviations from the curve are then noise.
fn explained_share(measurements: &[Measurement], curve: &[LogRatios]) -> f64 {
    let variance = |values: &dyn Fn(usize) -> f64| {
        let count = measurements.len() as f64;
        let mean = (0..measurements.len()).map(values).sum::<f64>() / count;
        let squares = (0..measurements.len()).map(|number| (values(number) - mean).powi(2));
        squares.sum::<f64>()
    };
    let total = |values: &dyn Fn(usize, usize) -> f64| {
        variance(&|number| values(number, 0)) + variance(&|number| values(number, 1))
    };
    let measured = total(&|number, value| measurements[number].log_ratios[value]);
    let left =
        total(&|number, value| measurements[number].log_ratios[value] - curve[number][value]);
    (1.0 - left / measured.max(f64::MIN_POSITIVE)).max(0.0)
}

/// The number of posterior samples to draw for this number of points.
pub(super) fn sample_count(points: usize) -> usize {
    (SAMPLED_VALUES / points.max(1)).clamp(SAMPLE_COUNTS[0], SAMPLE_COUNTS[1])
}

impl ActiveSet {
    /// Creates the set for these points, with standard normal random numbers for `count` samples.
    fn new(space: &SearchSpace, points: Vec<usize>, count: usize, seed: Seed) -> Self {
        let row = |number: usize| {
            let seed = seed.number(number as u64);
            (0..2 * points.len())
                .flat_map(|index| seed.number(index as u64).normals())
                .collect()
        };
        Self {
            normals: (0..count).map(row).collect(),
            ..Self::without_draws(space, points, seed)
        }
    }

    /// Creates a set without points, until the first samples are drawn.
    pub(super) fn empty(space: &SearchSpace, seed: Seed) -> Self {
        Self::without_draws(space, Vec::new(), seed)
    }

    /// Creates the set for these points, without random numbers.
    fn without_draws(space: &SearchSpace, points: Vec<usize>, seed: Seed) -> Self {
        Self {
            correlation: Correlation::new(space, &points),
            points,
            seed,
            normals: Vec::new(),
            curves: HashMap::new(),
        }
    }
}
