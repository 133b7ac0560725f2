//! The levels of a search space: the combinations of values of knobs of the kind [`KnobKind::Level`], such as batch
//! sizes. Each level has its own curve of time and energy over the other knobs.

use sweetspot_quantity::{Joules, Seconds};
use sweetspot_stats::Seed;

use super::model::{ActiveSet, Model, sample_count};
use super::noise_scales::NoiseModel;
use super::posterior::Measurement;
use super::prior::Prior;
use super::untried_levels;
use crate::Outcome;
use crate::search::{EarlierResults, KnobKind, SearchSpace};

/// The minimum number of measurements of a level before its results inform the predictions for other levels.
const MIN_INFORMATIVE_MEASUREMENTS: usize = 3;
/// A level without a single measurement is excluded after this many of its points failed.
const FAILURES_TO_EXCLUDE_LEVEL: usize = 2;

/// All points, grouped by level; in a space without level knobs, all points belong to a single level.
pub(super) struct Levels {
    pub(super) levels: Vec<Level>,
    /// For each point of the space: the index of its level, and its index among the points of that level.
    pub(super) of_points: Vec<(usize, usize)>,
    /// The prior covariance matrix of the logarithm of time between levels, in row-major order.
    pub(super) covariance: Vec<f64>,
    pub(super) seed: Seed,
}

/// One level: a combination of values of the level knobs, with the model of its curve.
pub(super) struct Level {
    /// The knobs that vary within the level.
    knobs: Vec<KnobKind>,
    /// The coordinates of the level's points, without the level knobs.
    pub(super) points: Vec<Vec<f64>>,
    /// Absent until a point of the level is measured.
    model: Option<LevelModel>,
}

/// The model of a level that has measurements. Its values are relative to a measured point, the anchor.
struct LevelModel {
    /// The index of the anchor among the level's points.
    anchor: usize,
    space: SearchSpace,
    model: Model,
    /// The latest samples, and the inputs from which they were drawn.
    cache: Option<(SampleInputs, Vec<Vec<f64>>)>,
}

/// The inputs from which samples are drawn: the points, the measurements and the number of samples.
type SampleInputs = (Vec<usize>, Vec<Measurement>, usize);

/// The inputs of the model that are the same for all levels.
pub(super) struct Observations<'a> {
    /// The mean power per GPU at the reference, in watts.
    pub(super) reference_power: f64,
    pub(super) prior: &'a Prior,
    pub(super) noise_model: NoiseModel,
    /// The indices of the active points: those for which the model predicts time and energy.
    pub(super) active: &'a [usize],
    pub(super) measurements: &'a [Measurement],
}

/// Samples of the posterior, and which points may be evaluated or recommended.
pub(super) struct PosteriorSamples {
    /// One row for each sample: the logarithms of time, then of energy, at the active points, relative to the
    /// reference.
    pub(super) samples: Vec<Vec<f64>>,
    /// For each active point, whether it may be evaluated; of a level without measurements, only one point may.
    pub(super) may_evaluate: Vec<bool>,
    /// For each active point, the index of its level if that level has no measurements yet; such a point cannot be
    /// recommended.
    pub(super) untried_levels: Vec<Option<usize>>,
}

impl Levels {
    pub(super) fn new(space: &SearchSpace, seed: Seed) -> Self {
        let coordinates = |point: &[f64], of_level: bool| -> Vec<f64> {
            let knobs = space.knobs().iter().zip(point);
            let own = knobs.filter(|(knob, _)| (**knob == KnobKind::Level) == of_level);
            own.map(|(_, value)| *value).collect()
        };
        let mut values: Vec<Vec<f64>> = Vec::new();
        let mut levels: Vec<Level> = Vec::new();
        let mut of_points = Vec::new();
        for point in space.points() {
            let own = coordinates(point, true);
            let number = values.iter().position(|other| *other == own);
            let number = number.unwrap_or_else(|| {
                values.push(own);
                levels.push(Level::new(space));
                levels.len() - 1
            });
            of_points.push((number, levels[number].points.len()));
            levels[number].points.push(coordinates(point, false));
        }
        let origin = of_points[space.reference()].0;
        Self {
            covariance: untried_levels::covariance(&values, origin),
            levels,
            of_points,
            seed,
        }
    }

    /// Whether a point can still be evaluated: it has not failed, and failures of other points have not excluded its
    /// level.
    pub(super) fn is_possible(
        &self,
        point: usize,
        has_failed: &impl Fn(usize) -> bool,
        is_measured: &impl Fn(usize) -> bool,
    ) -> bool {
        if has_failed(point) || self.levels.len() == 1 {
            return !has_failed(point);
        }
        let level = self.of_points[point].0;
        let own = (0..self.of_points.len()).filter(|other| self.of_points[*other].0 == level);
        let (failed, others): (Vec<usize>, Vec<usize>) = own.partition(|other| has_failed(*other));
        failed.len() < FAILURES_TO_EXCLUDE_LEVEL || others.into_iter().any(is_measured)
    }

    /// Draws samples of time and energy at the active points from the posterior.
    pub(super) fn draw_samples(
        &mut self,
        reference: usize,
        observations: &Observations<'_>,
    ) -> Option<PosteriorSamples> {
        let active = observations.active;
        let count = sample_count(active.len());
        let mut samples = vec![vec![0.0; 2 * active.len()]; count];
        let mut tried = Vec::new();
        for number in 0..self.levels.len() {
            let own = self.points_of(active, number);
            let measurements: Vec<&Measurement> = observations
                .measurements
                .iter()
                .filter(|measurement| own.contains(&measurement.point))
                .collect();
            if measurements.is_empty() {
                continue;
            }
            self.update_model(number, reference, observations, &measurements)?;
            let rows = self.level_samples(number, count, observations, &own, &measurements)?;
            let order = self.shuffled_rows(number, count);
            for (sample, row) in samples.iter_mut().zip(order) {
                for (index, point) in own.iter().enumerate() {
                    sample[*point] = rows[row][index];
                    sample[active.len() + point] = rows[row][own.len() + index];
                }
            }
            tried.push(number);
        }
        let level = |point: &usize| self.of_points[*point].0;
        let untried = |point: &usize| Some(level(point)).filter(|level| !tried.contains(level));
        let mut posterior = PosteriorSamples {
            samples,
            may_evaluate: vec![true; active.len()],
            untried_levels: active.iter().map(untried).collect(),
        };
        self.extrapolate(reference, active, &tried, &mut posterior)?;
        Some(posterior)
    }

    /// The positions in `active` of the points that belong to a level.
    pub(super) fn points_of(&self, active: &[usize], level: usize) -> Vec<usize> {
        let all = 0..active.len();
        all.filter(|index| self.of_points[active[*index]].0 == level)
            .collect()
    }

    /// Creates the model of a level, anchored at the measured point that is nearest to the reference's settings,
    /// unless the level already has a model with this anchor.
    fn update_model(
        &mut self,
        number: usize,
        reference: usize,
        observations: &Observations<'_>,
        measurements: &[&Measurement],
    ) -> Option<()> {
        let (reference_level, in_level) = self.of_points[reference];
        let wanted = self.levels[reference_level].points[in_level].clone();
        let anchor = measurements.iter().min_by(|a, b| {
            let distance = |measurement: &Measurement| {
                let point = self.of_points[observations.active[measurement.point]].1;
                self.levels[number].distance(point, &wanted)
            };
            distance(a).total_cmp(&distance(b))
        })?;
        let anchor_point = self.of_points[observations.active[anchor.point]].1;
        let known = self.levels[number].model.as_ref();
        if known.is_some_and(|known| known.anchor == anchor_point) {
            return Some(());
        }
        let others = self.results_of_other_levels(number, observations);
        let prior = observations
            .prior
            .with_studies(&self.levels[number].knobs, &others);
        let level = &mut self.levels[number];
        let space =
            SearchSpace::new(level.knobs.clone(), level.points.clone(), anchor_point).ok()?;
        let [time, energy] = anchor.log_ratios;
        let power = observations.reference_power * libm::exp(energy - time);
        let active_set = ActiveSet::empty(&space, self.seed.number(number as u64));
        level.model = Some(LevelModel {
            anchor: anchor_point,
            model: Model::new(&space, power, &prior, observations.noise_model, active_set),
            space,
            cache: None,
        });
        Some(())
    }

    /// The results of the other levels with enough measurements, as earlier results that inform this level's prior.
    fn results_of_other_levels(
        &self,
        number: usize,
        observations: &Observations<'_>,
    ) -> Vec<EarlierResults> {
        let others = self
            .levels
            .iter()
            .enumerate()
            .filter(|(other, level)| *other != number && level.model.is_some());
        let of_level = |(other, level): (usize, &Level)| {
            let model = level.model.as_ref()?;
            let own = observations.measurements.iter().filter_map(|measurement| {
                let (of, point) = self.of_points[observations.active[measurement.point]];
                (of == other).then_some((point, measurement.log_ratios))
            });
            let own: Vec<(usize, [f64; 2])> = own.collect();
            let reference = own.iter().position(|(point, _)| *point == model.anchor)?;
            let outcome = |log_ratios: &[f64; 2]| {
                let energy = observations.reference_power * libm::exp(log_ratios[1]);
                Outcome::new(Seconds::new(libm::exp(log_ratios[0])), Joules::new(energy))
            };
            (own.len() >= MIN_INFORMATIVE_MEASUREMENTS).then(|| EarlierResults {
                points: own
                    .iter()
                    .map(|(point, _)| level.points[*point].clone())
                    .collect(),
                outcomes: own.iter().map(|(_, value)| outcome(value)).collect(),
                reference,
            })
        };
        others.filter_map(of_level).collect()
    }

    /// Draws samples of time and energy at the active points of a level that has measurements.
    fn level_samples(
        &mut self,
        number: usize,
        count: usize,
        observations: &Observations<'_>,
        own: &[usize],
        measurements: &[&Measurement],
    ) -> Option<Vec<Vec<f64>>> {
        let of_points = &self.of_points;
        let in_level = |index: usize| of_points[observations.active[index]].1;
        let LevelModel {
            anchor,
            space,
            model,
            cache,
        } = self.levels[number].model.as_mut()?;
        let anchor = measurements
            .iter()
            .find(|measurement| in_level(measurement.point) == *anchor)?
            .log_ratios;
        let measurements: Vec<Measurement> = measurements
            .iter()
            .filter_map(|measurement| {
                let [time, energy] = measurement.log_ratios;
                Some(Measurement {
                    point: own.iter().position(|index| *index == measurement.point)?,
                    log_ratios: [time - anchor[0], energy - anchor[1]],
                    noise: measurement.noise,
                })
            })
            .collect();
        let points: Vec<usize> = own.iter().map(|index| in_level(*index)).collect();
        let inputs = (points, measurements, count);
        if let Some((cached, rows)) = cache
            && *cached == inputs
        {
            return Some(rows.clone());
        }
        let mut rows = model.draw_samples(space, &inputs.0, &inputs.1, count)?;
        for row in &mut rows {
            let (time, energy) = row.split_at_mut(own.len());
            time.iter_mut().for_each(|value| *value += anchor[0]);
            energy.iter_mut().for_each(|value| *value += anchor[1]);
        }
        *cache = Some((inputs, rows.clone()));
        Some(rows)
    }

    /// The random order in which a level's samples are combined with those of other levels. Samples are sorted by
    /// curve, so the same order in all levels would correlate them.
    fn shuffled_rows(&self, number: usize, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        if number > 0 {
            let seed = self.seed.label("order").number(number as u64);
            let keys: Vec<f64> = order
                .iter()
                .map(|row| seed.number(*row as u64).uniform())
                .collect();
            order.sort_by(|a, b| keys[*a].total_cmp(&keys[*b]));
        }
        order
    }
}

impl Level {
    fn new(space: &SearchSpace) -> Self {
        let knobs = space.knobs().iter().copied();
        Self {
            knobs: knobs.filter(|knob| *knob != KnobKind::Level).collect(),
            points: Vec::new(),
            model: None,
        }
    }

    /// The distance between a point and these coordinates: the sum of the absolute log ratios. All knob values are
    /// positive.
    pub(super) fn distance(&self, point: usize, to: &[f64]) -> f64 {
        let pairs = self.points[point].iter().zip(to);
        pairs
            .map(|(a, b)| libm::log(a.max(1e-3) / b.max(1e-3)).abs())
            .sum()
    }
}
