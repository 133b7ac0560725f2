//! The gain of a setting, whether it meets the limits, and which setting to choose.

use sweetspot_decide::{Basis, Objective, Outcome};

use super::super::TuneConfig;
use super::super::drift::Drift;
use super::super::window::TuneWindow;
use super::LoadSearch;

/// Two settings are neighbours if they differ by at most this share of the knob's range.
const NEIGHBOUR_DISTANCE: f64 = 0.08;
/// A setting has an effect only if its power or time differs from the reference by at least this share.
const MIN_DIFFERENCE: f64 = 0.01;
/// A setting is chosen instead of the reference only if its relative gain is at least this.
const MIN_GAIN: f64 = 0.003;
/// A setting is chosen only if its gain exceeds this multiple of the gain's standard deviation. The multiple is low
/// because missing a small gain costs as much as choosing a setting without one.
const MIN_GAIN_NOISE: f64 = 0.3;

impl LoadSearch {
    /// The mean outcome of the reference over all its measurement windows.
    fn reference_outcome(&self, config: &TuneConfig, drift: &Drift) -> Option<Outcome> {
        let reference = config.space.reference();
        let windows = self.tried.iter().filter(|window| window.point == reference);
        let outcomes: Vec<Outcome> = windows
            .map(|window| self.warm_outcome(config, window, drift))
            .collect();
        Outcome::mean(&outcomes)
    }

    /// By how much the objective in a measurement window is better than at the reference, as a share.
    pub(in crate::tune) fn gain(&self, config: &TuneConfig, window: &TuneWindow) -> Option<f64> {
        let drift = self.drift();
        let reference = self.reference_outcome(config, &drift)?;
        let own = self.warm_outcome(config, window, &drift);
        let basis = Basis {
            reference: Some(&reference),
            tariff: &config.criteria.tariff,
        };
        let objective = config.criteria.objective;
        let value = |outcome: &Outcome| objective.value(outcome, basis).ok();
        let (own, reference) = (value(&own)?, value(&reference)?);
        Some(match objective {
            Objective::GainMinusLoss => own - reference,
            _ if objective.is_maximised() => own / reference - 1.0,
            _ => 1.0 - own / reference,
        })
    }

    /// The smallest gain over the reference that counts as real rather than noise at a point.
    pub(in crate::tune) fn min_gain(&self, config: &TuneConfig, point: usize) -> f64 {
        let reference = config.space.reference();
        let windows = self.tried.iter();
        let of_reference = windows.filter(|window| window.point == reference);
        let of_reference = of_reference.count().max(1) as f64;
        let own = self.windows_near(config, point).count().max(1) as f64;
        let noise = self.reference.as_ref().map(|window| window.noise);
        let noise = noise.map_or(0.0, |noise| noise.time + noise.energy);
        MIN_GAIN.max(MIN_GAIN_NOISE * noise * (1.0 / of_reference + 1.0 / own).sqrt())
    }

    /// The measurement windows at a point and at its neighbours.
    fn windows_near<'a>(
        &'a self,
        config: &'a TuneConfig,
        point: usize,
    ) -> impl Iterator<Item = &'a TuneWindow> {
        let windows = self.tried.iter().chain(&self.choice_windows);
        windows.filter(move |window| {
            window.point == point
                || window.point != config.space.reference()
                    && self.is_near(config, window.point, point)
        })
    }

    /// The mean gain over the reference of the measurement windows at a point.
    pub(in crate::tune) fn gain_at(&self, config: &TuneConfig, point: usize) -> Option<f64> {
        let windows = self.tried.iter().chain(&self.choice_windows);
        let gains: Vec<f64> = windows
            .filter(|window| window.point == point)
            .filter_map(|window| self.gain(config, window))
            .collect();
        (!gains.is_empty()).then(|| gains.iter().sum::<f64>() / gains.len() as f64)
    }

    /// The mean gain over the reference at a point and its neighbours, which is less noisy than that of a single
    /// measurement window.
    pub(in crate::tune) fn gain_near(&self, config: &TuneConfig, point: usize) -> Option<f64> {
        let gains: Vec<f64> = self
            .windows_near(config, point)
            .filter_map(|window| self.gain(config, window))
            .collect();
        (!gains.is_empty()).then(|| gains.iter().sum::<f64>() / gains.len() as f64)
    }

    /// Whether the mean outcome at a point meets the limits; also true if the outcome is unknown.
    pub(in crate::tune) fn meets_limits(&self, config: &TuneConfig, point: usize) -> bool {
        let drift = self.drift();
        let Some(reference) = self.reference_outcome(config, &drift) else {
            return true;
        };
        let windows = self.tried.iter().chain(&self.choice_windows);
        let outcomes: Vec<Outcome> = windows
            .filter(|window| window.point == point)
            .map(|window| self.warm_outcome(config, window, &drift))
            .collect();
        let mean = match point == config.space.reference() {
            true => Some(reference.clone()),
            false => Outcome::mean(&outcomes),
        };
        let Some(mean) = mean else {
            return true;
        };
        let basis = Basis {
            reference: Some(&reference),
            tariff: &config.criteria.tariff,
        };
        let limits = config.criteria.limits.iter();
        limits
            .into_iter()
            .all(|limit| limit.check(&mean, basis).is_ok())
    }

    /// The point with the highest gain among the tried points that meet the limits.
    fn best_within_limits(&self, config: &TuneConfig) -> Option<usize> {
        let points = self.tried.iter().map(|window| window.point);
        let allowed = points.filter(|point| self.meets_limits(config, *point));
        let gain = |point: &usize| self.gain_at(config, *point).unwrap_or(f64::NEG_INFINITY);
        allowed.max_by(|a, b| gain(a).total_cmp(&gain(b)))
    }

    /// The point to set for the rest of the load: the strategy's recommendation if it meets the limits and is better
    /// than the reference by more than noise, and otherwise the reference. `None` if no tried point meets the
    /// limits.
    pub(in crate::tune) fn choose_point(
        &self,
        config: &TuneConfig,
        answer: Option<usize>,
    ) -> Option<usize> {
        let reference = config.space.reference();
        let is_allowed = |point: &usize| self.meets_limits(config, *point);
        let answer = answer
            .filter(is_allowed)
            .or_else(|| self.best_within_limits(config));
        if !is_allowed(&reference) {
            return answer;
        }
        let is_better = |point: &usize| {
            let gain = self.gain_near(config, *point);
            gain.is_none_or(|gain| gain > self.min_gain(config, *point))
                && self.differs_from_reference(config, *point)
        };
        answer.filter(is_better).or(Some(reference))
    }

    /// Whether power or time at a point differs from the reference by more than noise; if not, the setting has no
    /// effect.
    pub(in crate::tune) fn differs_from_reference(
        &self,
        config: &TuneConfig,
        point: usize,
    ) -> bool {
        let reference = config.space.reference();
        let at = |point: usize| {
            let windows = self.tried.iter().chain(&self.choice_windows);
            windows.filter(move |window| window.point == point)
        };
        let (own, other) = (at(point).count() as f64, at(reference).count() as f64);
        if own == 0.0 || other == 0.0 {
            return true;
        }
        let differs = |of: &dyn Fn(&TuneWindow) -> Option<f64>,
                       noise: &dyn Fn(&TuneWindow) -> f64| {
            let mean = |point: usize, count: f64| {
                let values: Option<Vec<f64>> = at(point).map(of).collect();
                Some(values?.iter().sum::<f64>() / count)
            };
            let noise = at(point).chain(at(reference)).map(noise).sum::<f64>() / (own + other);
            let threshold = 3.0 * noise * (1.0 / own + 1.0 / other).sqrt();
            let ratio = mean(point, own).zip(mean(reference, other));
            ratio.is_some_and(|(own, other)| {
                (own / other).ln().abs() > threshold.max(MIN_DIFFERENCE)
            })
        };
        let power_noise = |window: &TuneWindow| {
            // The variance of energy is the sum of the variances of power and time.
            let (energy, time) = (window.noise.energy, window.noise.time);
            (energy * energy - time * time).max(0.0).sqrt()
        };
        differs(&|window| Some(window.power.get()), &power_noise)
            || differs(&|window| window.items_per_second, &|window| {
                window.noise.time
            })
    }

    /// Whether two points are neighbours in the space of the search.
    fn is_near(&self, config: &TuneConfig, a: usize, b: usize) -> bool {
        let points = self.space.settings(config).points();
        let indices = self.space.index(config, a).zip(self.space.index(config, b));
        let Some((a, b)) = indices else {
            return false;
        };
        (0..points[a].len()).all(|knob| {
            let values = || points.iter().map(|point| point[knob]);
            let lowest = values().fold(f64::INFINITY, f64::min);
            let highest = values().fold(f64::NEG_INFINITY, f64::max);
            (points[a][knob] - points[b][knob]).abs() <= NEIGHBOUR_DISTANCE * (highest - lowest)
        })
    }
}
