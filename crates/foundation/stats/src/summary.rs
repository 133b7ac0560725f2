//! Statistics of repeated measurements.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

/// The lower and upper end of a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end of the confidence interval.
    pub low: f64,
    /// The upper end of the confidence interval.
    pub high: f64,
}

/// The mean and spread of repeated measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The number of measurements.
    pub count: usize,
    /// The mean of the measurements.
    pub mean: f64,
    /// The sample standard deviation; `None` for a single measurement.
    pub deviation: Option<f64>,
    /// The 95 % confidence interval of the mean by Student's t; `None` for a single measurement.
    pub interval95: Option<Interval>,
}

impl Summary {
    /// Computes the summary of measurements; `None` if there are none.
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

/// The 97.5 % quantile of Student's t distribution with these degrees of freedom.
fn student_975(degrees: usize) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, degrees as f64).ok()?;
    Some(distribution.inverse_cdf(0.975))
}

/// The geometric mean; `None` if there are no values or one of them is not positive.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| *value <= 0.0 || value.is_nan()) {
        return None;
    }
    let logarithms: f64 = values.iter().map(|value| libm::log(*value)).sum();
    Some(libm::exp(logarithms / values.len() as f64))
}

/// The difference between the means of two sets of measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The mean of the first set minus the mean of the second.
    pub mean: f64,
    /// The 95 % confidence interval of the difference (Welch); `None` if a set is too small to have a spread.
    pub interval95: Option<Interval>,
}

impl Difference {
    /// Compares the means of two sets of measurements; `None` if one of them is empty.
    pub fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        let (a, b) = (Summary::of(a)?, Summary::of(b)?);
        let mean = a.mean - b.mean;
        let interval95 = welch_half_width(&a, &b).map(|half| Interval {
            low: mean - half,
            high: mean + half,
        });
        Some(Self { mean, interval95 })
    }

    /// Whether the difference is significant at the 5 % level; `None` if a set is too small to have a spread.
    pub fn is_significant(&self) -> Option<bool> {
        let interval = self.interval95?;
        Some(interval.low > 0.0 || interval.high < 0.0)
    }
}

/// Half the width of the 95 % confidence interval of the difference of two means (Welch); `None` if a set has a single
/// value.
fn welch_half_width(a: &Summary, b: &Summary) -> Option<f64> {
    let share = |summary: &Summary| Some(summary.deviation?.powi(2) / summary.count as f64);
    let (of_a, of_b) = (share(a)?, share(b)?);
    let variance = of_a + of_b;
    if variance == 0.0 {
        return Some(0.0);
    }
    let part = |share: f64, count: usize| share.powi(2) / (count - 1) as f64;
    let degrees = variance.powi(2) / (part(of_a, a.count) + part(of_b, b.count));
    if !(variance.is_finite() && degrees.is_finite()) {
        return None;
    }
    let quantile = StudentsT::new(0.0, 1.0, degrees).ok()?.inverse_cdf(0.975);
    Some(quantile * libm::sqrt(variance))
}

/// Whether two sets of measurements differ at the 5 % level (Welch's test); `None` if one of them is too small
/// to have a spread.
pub fn differ(a: &[f64], b: &[f64]) -> Option<bool> {
    Difference::of(a, b)?.is_significant()
}

/// Whether any of several sets of measurements differs from the others at the 5 % level (analysis of variance);
/// `None` if there are fewer than two sets, or all are too small to have a spread.
pub fn any_differs(groups: &[Vec<f64>]) -> Option<bool> {
    let summaries: Vec<Summary> = groups.iter().filter_map(|set| Summary::of(set)).collect();
    let count: usize = summaries.iter().map(|set| set.count).sum();
    if summaries.len() < 2 || count == summaries.len() {
        return None;
    }
    let total: f64 = summaries
        .iter()
        .map(|set| set.mean * set.count as f64)
        .sum();
    let mean = total / count as f64;
    let between = summaries
        .iter()
        .map(|set| set.count as f64 * (set.mean - mean).powi(2));
    let within = summaries
        .iter()
        .filter_map(|set| Some((set.count - 1) as f64 * set.deviation?.powi(2)));
    let (between, within): (f64, f64) = (between.sum(), within.sum());
    if within == 0.0 {
        return Some(between > 0.0);
    }
    let freedom = (
        (summaries.len() - 1) as f64,
        (count - summaries.len()) as f64,
    );
    let ratio = (between / freedom.0) / (within / freedom.1);
    if !ratio.is_finite() {
        return None;
    }
    let above = FisherSnedecor::new(freedom.0, freedom.1).ok()?.sf(ratio);
    Some(above < 0.05)
}
