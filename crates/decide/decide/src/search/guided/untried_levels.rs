//! Predictions for levels without measurements: the curve of the most similar measured level, shifted by a Gaussian
//! process over the levels.

use sweetspot_stats::{Cholesky, Seed, matern};

use super::levels::{Levels, PosteriorSamples};

/// The prior standard deviation of the linear trend: the change of log time over the whole range of a level knob.
const TREND_DEVIATION: f64 = 1.5;
/// The prior standard deviation of log time around the linear trend.
const SMOOTH_DEVIATION: f64 = 0.3;
/// The correlation length of the deviations from the trend, as a share of the level knob's range.
const CORRELATION_LENGTH: f64 = 0.5;
/// The prior standard deviation of log power between levels, as a share of that of log time.
const POWER_SCALE: f64 = 0.35;

/// An active point of a level without measurements, and the measured level from which its values are derived.
struct ShiftedPoint {
    level: usize,
    /// The index of the measured level that is most similar to this point's level.
    source: usize,
    /// The position of the point among the active points.
    index: usize,
    /// The position among the active points of the source level's point that is nearest to this point.
    source_index: usize,
}

/// The Gaussian process over the levels, conditioned on the levels that have measurements.
struct LevelProcess<'a> {
    levels: &'a Levels,
    /// The indices of the levels that have measurements.
    tried: &'a [usize],
    /// For each level, the position of the active point that is nearest to the reference's settings.
    probes: Vec<Option<usize>>,
    /// The Cholesky decomposition of the prior covariance matrix of all levels.
    prior: Cholesky,
    /// The Cholesky decomposition of the prior covariance matrix of the measured levels.
    tried_prior: Cholesky,
}

impl Levels {
    /// Fills the samples with predictions for the points of levels without measurements.
    pub(super) fn extrapolate(
        &self,
        reference: usize,
        active: &[usize],
        tried: &[usize],
        posterior: &mut PosteriorSamples,
    ) -> Option<()> {
        let count = self.levels.len();
        if tried.len() == count {
            return Some(());
        }
        let (reference_level, in_level) = self.of_points[reference];
        let wanted = &self.levels[reference_level].points[in_level];
        let nearest = |level: usize, to: &[f64]| self.nearest_point(active, level, to);
        let probes: Vec<Option<usize>> = (0..count).map(|level| nearest(level, wanted)).collect();
        let mut shifted = Vec::new();
        for level in (0..count).filter(|level| !tried.contains(level)) {
            let similarity = |other: &usize| self.covariance[level * count + other];
            let by_similarity = |a: &&usize, b: &&usize| similarity(a).total_cmp(&similarity(b));
            let source = *tried.iter().max_by(by_similarity)?;
            for index in self.points_of(active, level) {
                posterior.may_evaluate[index] = probes[level] == Some(index);
                let point = &self.levels[level].points[self.of_points[active[index]].1];
                shifted.push(ShiftedPoint {
                    level,
                    source,
                    index,
                    source_index: nearest(source, point)?,
                });
            }
        }
        let process = LevelProcess::new(self, tried, probes)?;
        for (number, sample) in posterior.samples.iter_mut().enumerate() {
            let seed = self.seed.label("levels").number(number as u64);
            let (time, energy) = sample.split_at_mut(active.len());
            let shifts = process.draw_shifts(seed.label("time"), 1.0, |index| time[index])?;
            for point in &shifted {
                let shift = shifts[point.level] - shifts[point.source];
                time[point.index] = time[point.source_index] + shift;
                energy[point.index] = energy[point.source_index] + shift;
            }
            let shifts = process.draw_shifts(seed.label("power"), POWER_SCALE, |index| {
                energy[index] - time[index]
            })?;
            for point in &shifted {
                energy[point.index] += shifts[point.level] - shifts[point.source];
            }
        }
        Some(())
    }

    /// The position among the active points of a level's point that is nearest to these coordinates.
    fn nearest_point(&self, active: &[usize], level: usize, to: &[f64]) -> Option<usize> {
        let mut own = self.points_of(active, level);
        own.sort_by(|a, b| {
            let distance =
                |index: &usize| self.levels[level].distance(self.of_points[active[*index]].1, to);
            distance(a).total_cmp(&distance(b))
        });
        own.first().copied()
    }
}

impl<'a> LevelProcess<'a> {
    fn new(levels: &'a Levels, tried: &'a [usize], probes: Vec<Option<usize>>) -> Option<Self> {
        let count = levels.levels.len();
        let tried_covariance: Vec<f64> = tried
            .iter()
            .flat_map(|a| tried.iter().map(move |b| (*a, *b)))
            .map(|(a, b)| levels.covariance[a * count + b])
            .collect();
        Some(Self {
            levels,
            tried,
            probes,
            prior: Cholesky::of(&levels.covariance, count)?,
            tried_prior: Cholesky::of(&tried_covariance, tried.len())?,
        })
    }

    /// Draws a random shift of log time or log power for every level, conditioned on the values at the measured levels
    /// (Matheron's rule).
    fn draw_shifts(
        &self,
        seed: Seed,
        scale: f64,
        value: impl Fn(usize) -> f64,
    ) -> Option<Vec<f64>> {
        let count = self.levels.levels.len();
        let normals: Vec<f64> = (0..count)
            .map(|level| seed.number(level as u64).normal())
            .collect();
        let mut drawn = self.prior.times(&normals);
        let mut difference: Vec<f64> = self
            .tried
            .iter()
            .map(|level| Some(value(self.probes[*level]?) - scale * drawn[*level]))
            .collect::<Option<_>>()?;
        self.tried_prior.solve(&mut difference);
        for (level, drawn) in drawn.iter_mut().enumerate() {
            *drawn *= scale;
            let pairs = self.tried.iter().zip(&difference);
            *drawn += pairs
                .map(|(other, x)| self.levels.covariance[level * count + other] * x)
                .sum::<f64>();
        }
        Some(drawn)
    }
}

/// The prior covariance matrix of log time between levels, in row-major order; the linear trend is zero at the level
/// `origin`.
pub(super) fn covariance(values: &[Vec<f64>], origin: usize) -> Vec<f64> {
    let knobs = values.first().map_or(0, Vec::len);
    let scaled: Vec<Vec<f64>> = (0..knobs)
        .map(|knob| {
            let all = || values.iter().map(|value| value[knob]);
            let is_positive = all().all(|value| value > 0.0);
            let position = |value: f64| if is_positive { libm::log(value) } else { value };
            let low = all().map(position).fold(f64::INFINITY, f64::min);
            let high = all().map(position).fold(f64::NEG_INFINITY, f64::max);
            let range = if high > low { high - low } else { 1.0 };
            let from = position(values[origin][knob]);
            all()
                .map(|value| (position(value) - from) / range)
                .collect()
        })
        .collect();
    let pairs = (0..values.len()).flat_map(|a| (0..values.len()).map(move |b| (a, b)));
    pairs
        .map(|(a, b)| {
            let line: f64 = scaled.iter().map(|knob| knob[a] * knob[b]).sum();
            let squares: f64 = scaled.iter().map(|knob| (knob[a] - knob[b]).powi(2)).sum();
            let same = f64::from(u8::from(a == b));
            let smooth = matern(libm::sqrt(squares) / CORRELATION_LENGTH);
            TREND_DEVIATION * TREND_DEVIATION * line
                + SMOOTH_DEVIATION * SMOOTH_DEVIATION * smooth
                + 1e-6 * same
        })
        .collect()
}
