//! How much repeated runs of the same configuration vary.

use sweetspot_stats::Summary;

/// The smallest standard deviation of a run, as a share: measurements and their arithmetic are not more exact.
const MIN_DEVIATION: f64 = 1e-6;
/// The standard deviations, as shares, that are possible if no configuration was repeated, all equally likely. The
/// large ones are of jobs on shared machines, and of objectives that multiply noisy values. Without them the model would
/// take such noise for effects of the settings.
const DEVIATIONS_WITHOUT_REPEATS: [f64; 11] = [
    0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.05, 0.1, 0.2, 0.4,
];
/// The standard deviations, as shares, that are possible if no configuration was repeated and the configurations have no
/// order, all equally likely. Nothing in such results tells noise from effects.
const DEVIATIONS_WITHOUT_EVIDENCE: [f64; 4] = [0.01, 0.03, 0.1, 0.3];
/// The possible degrees of freedom by which the noise of configurations differs: few mean that some configurations are
/// much noisier than others, infinitely many that all are alike.
const SIMILARITIES: [f64; 5] = [4.0, 8.0, 16.0, 32.0, f64::INFINITY];
/// The standard normal quantiles that represent the distribution of the common noise.
const NORMAL_QUANTILES: [f64; 5] = [-1.281_55, -0.524_40, 0.0, 0.524_40, 1.281_55];
/// With more degrees of freedom, the estimated noise counts as known.
const MANY_DEGREES: f64 = 60.0;

/// The noise of the runs of every configuration.
pub(super) struct RunNoise {
    /// For each configuration, the variance of one run.
    pub(super) variances: Vec<f64>,
    /// Equally likely factors by which all variances may be wrong, because they are estimated from few runs.
    pub(super) factors: Vec<f64>,
    /// Whether the noise is assumed, because no configuration was repeated.
    is_assumed: bool,
}

impl RunNoise {
    /// Estimates the noise from the runs of each configuration. The variance of a configuration is a compromise
    /// between its own runs and those of all configurations, depending on how much the configurations differ (a
    /// moderated variance; Smyth, 2004).
    pub(super) fn estimate(values: &[Vec<f64>], has_order: bool) -> Self {
        let spreads: Vec<Spread> = values.iter().map(|runs| Spread::of_runs(runs)).collect();
        let degrees: f64 = spreads.iter().map(|spread| spread.degrees).sum();
        let squares: f64 = spreads.iter().map(|spread| spread.squares).sum();
        if degrees == 0.0 {
            return Self {
                variances: vec![1.0; values.len()],
                factors: match has_order {
                    true => DEVIATIONS_WITHOUT_REPEATS.map(|d| d * d).to_vec(),
                    false => DEVIATIONS_WITHOUT_EVIDENCE.map(|d| d * d).to_vec(),
                },
                is_assumed: true,
            };
        }
        let pooled = (squares / degrees).max(MIN_DEVIATION * MIN_DEVIATION);
        let (similarity, common) = most_likely_noise(&spreads, pooled);
        let variance = |spread: &Spread| match similarity.is_finite() {
            true => (similarity * common + spread.squares) / (similarity + spread.degrees),
            false => pooled,
        };
        let variances: Vec<f64> = spreads.iter().map(variance).collect();
        let degrees = match similarity.is_finite() {
            true => degrees.min(similarity + degrees / spreads.len() as f64),
            false => degrees,
        };
        Self {
            variances,
            factors: match degrees > MANY_DEGREES {
                true => vec![1.0],
                false => NORMAL_QUANTILES
                    .map(|normal| variance_factor(degrees, normal))
                    .to_vec(),
            },
            is_assumed: false,
        }
    }

    /// The factors with which processes are compared before the best of them are weighted with every factor: the middle
    /// one, or all if the noise is assumed, because they are then far apart.
    pub(super) fn factors_for_ranking(&self) -> &[f64] {
        let middle = self.factors.len() / 2;
        match self.is_assumed {
            true => &self.factors,
            false => self.factors.get(middle..=middle).unwrap_or(&self.factors),
        }
    }
}

/// The spread of the runs of one configuration.
struct Spread {
    /// The number of runs minus one.
    degrees: f64,
    /// The sum of the squared differences from the mean.
    squares: f64,
}

impl Spread {
    fn of_runs(runs: &[f64]) -> Self {
        let degrees = runs.len().saturating_sub(1) as f64;
        let deviation = Summary::of(runs).and_then(|summary| summary.deviation);
        Self {
            degrees,
            squares: deviation.map_or(0.0, |deviation| degrees * deviation * deviation),
        }
    }
}

/// The similarity of [`SIMILARITIES`] and the typical variance of a configuration that explain the spreads best.
fn most_likely_noise(spreads: &[Spread], pooled: f64) -> (f64, f64) {
    /// The number of typical variances that are tried, each half of the one before: a few very noisy configurations
    /// raise the mean variance far above the typical one.
    const HALVINGS: i32 = 14;
    let mut best = (f64::NEG_INFINITY, (f64::INFINITY, pooled));
    for similarity in SIMILARITIES {
        for halving in 0..HALVINGS {
            let common = pooled * 0.5_f64.powi(halving);
            let likelihood = log_likelihood(spreads, similarity, common);
            if likelihood > best.0 {
                best = (likelihood, (similarity, common));
            }
            if similarity.is_infinite() {
                break;
            }
        }
    }
    best.1
}

/// The natural logarithm of the probability of the spreads, but for a constant.
fn log_likelihood(spreads: &[Spread], similarity: f64, common: f64) -> f64 {
    let repeated = spreads.iter().filter(|spread| spread.degrees > 0.0);
    let terms = repeated.map(|spread| {
        let half = 0.5 * spread.degrees;
        let least = spread.degrees * MIN_DEVIATION * MIN_DEVIATION;
        let squares = spread.squares.max(least);
        match similarity.is_finite() {
            true => {
                let other = 0.5 * similarity;
                let ratio = squares / (similarity * common);
                libm::lgamma(half + other) - libm::lgamma(half) - libm::lgamma(other)
                    + half * libm::log(ratio)
                    - (half + other) * libm::log1p(ratio)
            }
            false => {
                let ratio = 0.5 * squares / common;
                half * libm::log(ratio) - ratio - libm::lgamma(half)
            }
        }
    });
    terms.sum()
}

/// The factor by which the true variance exceeds an estimate with these degrees of freedom, at this standard normal
/// quantile: the reciprocal of a chi-squared quantile per degree of freedom (approximation of Wilson and Hilferty).
fn variance_factor(degrees: f64, normal: f64) -> f64 {
    let part = 2.0 / (9.0 * degrees);
    let chi = (1.0 - part - normal * libm::sqrt(part)).max(0.1).powi(3);
    1.0 / chi
}
