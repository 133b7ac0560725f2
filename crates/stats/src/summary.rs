//! What a handful of repeated measurements say.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Mean and spread of repeated measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many measurements.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Sample standard deviation; unknown for a single measurement.
    pub deviation: Option<f64>,
    /// 95 % confidence interval of the mean by Student's t; unknown for a single measurement.
    pub interval95: Option<Interval>,
}

impl Summary {
    /// Of at least one measurement.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let deviation = (count > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            libm::sqrt(squares / (count - 1) as f64)
        });
        let interval95 = deviation.and_then(|deviation| {
            let half = student_975(count - 1)? * deviation / libm::sqrt(count as f64);
            Some(Interval {
                low: mean - half,
                high: mean + half,
            })
        });
        Some(Self {
            count,
            mean,
            deviation,
            interval95,
        })
    }
}

/// The 97.5 % quantile of Student's distribution.
fn student_975(degrees: usize) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, degrees as f64).ok()?;
    Some(distribution.inverse_cdf(0.975))
}

/// The geometric mean; nothing where there are no values or one of them is not positive.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| *value <= 0.0 || value.is_nan()) {
        return None;
    }
    let logarithms: f64 = values.iter().map(|value| libm::log(*value)).sum();
    Some(libm::exp(logarithms / values.len() as f64))
}

/// Whether two sets of measurements differ at the 5 % level (Welch's test); unknown where one of them has
/// no spread to judge by.
pub fn differ(a: &[f64], b: &[f64]) -> Option<bool> {
    let (a, b) = (Summary::of(a)?, Summary::of(b)?);
    let share = |summary: &Summary| Some(summary.deviation?.powi(2) / summary.count as f64);
    let (of_a, of_b) = (share(&a)?, share(&b)?);
    let variance = of_a + of_b;
    if variance == 0.0 {
        return Some(a.mean != b.mean);
    }
    let part = |share: f64, count: usize| share.powi(2) / (count - 1) as f64;
    let degrees = variance.powi(2) / (part(of_a, a.count) + part(of_b, b.count));
    let quantile = StudentsT::new(0.0, 1.0, degrees).ok()?.inverse_cdf(0.975);
    Some((a.mean - b.mean).abs() > quantile * libm::sqrt(variance))
}
