//! The noise of measurement windows at a steady load.

use super::series::Growth;

/// Estimates the noise of the load: the relative variance of a 1 s mean, pooled over all measurement windows. A single
/// short window is too uncertain, and its variance is too high if the setting was still changing.
#[derive(Clone, Debug, Default)]
pub(super) struct NoiseEstimate {
    /// The sum of squares and the degrees of freedom of each measurement window.
    windows: Vec<(f64, f64)>,
}

/// The relative standard deviation that is assumed before the first measurement window.
const PRIOR_DEVIATION: f64 = 0.01;
/// The weight of [`PRIOR_DEVIATION`], in degrees of freedom.
const PRIOR_FREEDOM: f64 = 2.0;
/// The smallest relative standard deviation of the estimate, because no sensor is more accurate.
const MIN_DEVIATION: f64 = 0.001;
/// The variance of a measurement window is clipped to this multiple of the median variance.
const OUTLIER_FACTOR: f64 = 4.0;
/// The maximum number of measurement windows in the noise estimate; older ones are dropped.
const MAX_WINDOWS: usize = 50;

impl NoiseEstimate {
    /// Adds the variance within a measurement window to the estimate.
    pub(super) fn add(&mut self, growth: &Growth) {
        let count = growth.parts.len();
        // If a total grows in whole steps, its parts vary because of the steps and not because of the load.
        if count < 2 || growth.rate <= 0.0 || growth.step_error.is_some() {
            return;
        }
        let mean = growth.parts.iter().sum::<f64>() / count as f64;
        let squares: f64 = growth.parts.iter().map(|part| (part - mean).powi(2)).sum();
        if self.windows.len() >= MAX_WINDOWS {
            self.windows.remove(0);
        }
        let freedom = (count - 1) as f64;
        self.windows
            .push((squares / mean.powi(2) * growth.part_length, freedom));
    }

    /// The variance at which an outlying measurement window is clipped.
    fn variance_limit(&self) -> f64 {
        let mut each: Vec<f64> = self
            .windows
            .iter()
            .map(|window| window.0 / window.1)
            .collect();
        each.sort_by(f64::total_cmp);
        match each.len() {
            0..3 => f64::INFINITY,
            count => OUTLIER_FACTOR * each[count / 2],
        }
    }

    /// The relative standard deviation of a mean over this many seconds.
    pub(super) fn deviation_over(&self, seconds: f64) -> f64 {
        let limit = self.variance_limit();
        let (mut squares, mut freedom) = (
            PRIOR_DEVIATION * PRIOR_DEVIATION * PRIOR_FREEDOM,
            PRIOR_FREEDOM,
        );
        for (of_window, of_freedom) in &self.windows {
            squares += of_window.min(limit * of_freedom);
            freedom += of_freedom;
        }
        let variance = squares / freedom;
        (variance / seconds.max(1e-3)).sqrt().max(MIN_DEVIATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_window_has_less_noise() {
        let mut estimate = NoiseEstimate::default();
        for _ in 0..20 {
            estimate.add(&Growth {
                from: 0.0,
                to: 4.0,
                rate: 100.0,
                parts: vec![98.0, 102.0, 98.0, 102.0],
                part_length: 1.0,
                step_error: None,
            });
        }
        let second = estimate.deviation_over(1.0);
        assert!((0.02..0.025).contains(&second), "{second}");
        assert!((estimate.deviation_over(4.0) / second - 0.5).abs() < 1e-9);
        assert_eq!(
            NoiseEstimate::default().deviation_over(f64::INFINITY),
            MIN_DEVIATION
        );
    }
}
