//! The possible sizes of the deviations from a workload's curve and of the noise of readings, with their prior
//! probabilities.

/// The possible standard deviations of the smooth residual (the slowly varying deviation from a workload's curve), each
/// with its prior probability.
pub(super) const SMOOTH_SCALES: [(f64, f64); 3] = [(0.007, 0.5), (0.015, 0.4), (0.04, 0.1)];
/// The number of scales of the noise that are possible.
const NOISE_SCALE_COUNT: usize = 5;
/// The possible standard deviations of the noise from point to point in recorded results, each with its prior
/// probability.
pub(super) const ROUGH_SCALES: [(f64, f64); NOISE_SCALE_COUNT] = [
    (0.003, 0.25),
    (0.01, 0.35),
    (0.03, 0.25),
    (0.06, 0.13),
    (0.2, 0.02),
];
/// The prior probability that readings are far from the truth. It decides only if nothing else explains a reading.
const OUTLIERS: f64 = 1e-4;
/// The possible ratios of the true noise to the assumed default noise, each with its prior probability.
const DEFAULT_NOISE_FACTORS: [(f64, f64); NOISE_SCALE_COUNT] = [
    (0.3, 0.25),
    (1.0, 0.35),
    (2.0, 0.25),
    (4.0, 0.15),
    (16.0, OUTLIERS),
];
/// The possible ratios of the true noise to the noise that the caller reported, each with its prior probability.
const KNOWN_NOISE_FACTORS: [(f64, f64); NOISE_SCALE_COUNT] = [
    (1.0, 0.6),
    (1.2, 0.2),
    (1.6, 0.15),
    (2.5, 0.05),
    (10.0, OUTLIERS),
];
/// The number of residual processes (models of the deviation from a workload's curve): one for each pair of a smooth
/// scale and a rough scale or noise factor.
pub(super) const RESIDUAL_COUNT: usize = SMOOTH_SCALES.len() * ROUGH_SCALES.len();

/// What is known about the noise of evaluations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoiseModel {
    /// Evaluations are looked up in recorded results: their noise is part of the curve whose optimum is searched.
    Recorded,
    /// The noise of every evaluation was reported.
    Known,
    /// The noise is not known, and a default is assumed.
    Unknown,
}

impl NoiseModel {
    /// The possible noise, each with its prior probability: standard deviations for recorded results, otherwise factors
    /// of the assumed noise.
    pub(super) const fn scales(self) -> [(f64, f64); NOISE_SCALE_COUNT] {
        match self {
            Self::Recorded => ROUGH_SCALES,
            Self::Known => KNOWN_NOISE_FACTORS,
            Self::Unknown => DEFAULT_NOISE_FACTORS,
        }
    }
}

/// The prior probability of each residual process if there are no earlier studies.
pub(super) fn default_residual_priors(noise_model: NoiseModel) -> [f64; RESIDUAL_COUNT] {
    let scales = noise_model.scales();
    std::array::from_fn(|index| {
        SMOOTH_SCALES[index / scales.len()].1 * scales[index % scales.len()].1
    })
}
