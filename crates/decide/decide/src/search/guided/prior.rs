//! The prior from earlier studies: which simulated workloads explain their results, and how large the residuals are.

use std::sync::Arc;

use super::deviation::Deviation;
use super::model::{Explanation, Model};
use super::noise_scales::RESIDUAL_COUNT;
use super::posterior::{LogRatios, Measurement, normalised_weights};
use crate::search::{EarlierResults, KnobKind, Noise, SearchSpace};

/// The maximum total weight of earlier studies; the default prior has the remaining weight.
const MAX_TRUST: f64 = 0.8;
/// The standard deviation of the Gaussian that weights earlier studies by the log ratio of their reference power to the
/// power of the new job.
const POWER_SIMILARITY: f64 = 0.5;
/// The exponent that weakens a study's likelihood, because a study is strong evidence of its own workload only.
const LIKELIHOOD_EXPONENT: f64 = 0.3;
/// The share of a study's weight that its own curve has if a workload explains all of its variation; the workloads that
/// explain it have the rest.
const MAX_CURVE_SHARE: f64 = 0.5;
/// The maximum number of points that are used from one study; more of them add little information.
const MAX_POINTS_PER_STUDY: usize = 12;

/// Prior knowledge from earlier studies about the workload of a new search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prior {
    studies: Vec<ExplainedStudy>,
}

/// The simulated workloads and residual processes that explain the results of an earlier study.
#[derive(Clone, Debug, PartialEq)]
struct ExplainedStudy {
    /// The mean power per GPU at the reference, in watts.
    reference_power: f64,
    /// The index and the weight of each simulated workload that explains the study.
    workloads: Vec<(usize, f64)>,
    /// The weight of each residual process in the explanation of the study.
    residuals: [f64; RESIDUAL_COUNT],
    /// The index of the workload that explains the study best.
    best_workload: usize,
    /// The share of the study's variation that this workload explains.
    explained_share: f64,
    /// How the study deviates from that workload.
    deviation: Arc<Deviation>,
}

/// The logarithms of the prior weights of simulated workloads and residual processes.
pub(super) struct LogPriors {
    /// The log prior of each workload of the model, then of the curve of each study.
    pub(super) workloads: Vec<f64>,
    /// The logarithm of the prior weight of each residual process.
    pub(super) residuals: [f64; RESIDUAL_COUNT],
}

impl Prior {
    /// Learns from earlier studies that searched these knobs. Studies without energies or with a single point are
    /// ignored.
    pub fn learn(knobs: &[KnobKind], earlier: &[EarlierResults]) -> Self {
        let studies = earlier.iter().filter_map(|study| explain(knobs, study));
        Self {
            studies: studies.collect(),
        }
    }

    /// Returns this prior with the knowledge from these studies added.
    pub(super) fn with_studies(&self, knobs: &[KnobKind], earlier: &[EarlierResults]) -> Self {
        let more = Self::learn(knobs, earlier).studies;
        Self {
            studies: self.studies.iter().cloned().chain(more).collect(),
        }
    }

    /// Returns this prior without the study that has this index.
    pub fn without(&self, study: usize) -> Self {
        let mut studies = self.studies.clone();
        if study < studies.len() {
            studies.remove(study);
        }
        Self { studies }
    }

    /// Whether the prior contains no earlier studies.
    pub fn is_empty(&self) -> bool {
        self.studies.is_empty()
    }

    /// The curve of each study: the index of the workload that explains it best, and how the study deviates from it.
    pub(super) fn curves(&self) -> impl Iterator<Item = (usize, Arc<Deviation>)> {
        let studies = self.studies.iter();
        studies.map(|study| (study.best_workload, Arc::clone(&study.deviation)))
    }

    /// The log priors for a job that draws `power` watts per GPU at the reference. `default_residuals` are the
    /// probabilities of the residual processes without earlier studies.
    pub(super) fn log_priors(
        &self,
        power: f64,
        workloads: usize,
        default_residuals: [f64; RESIDUAL_COUNT],
    ) -> LogPriors {
        let similarity = |study: &ExplainedStudy| {
            let distance = libm::log(study.reference_power / power) / POWER_SIMILARITY;
            libm::exp(-0.5 * distance * distance)
        };
        let all: f64 = self.studies.iter().map(similarity).sum();
        let trust = MAX_TRUST * all / (all + 0.5);
        let mut workload_weights = vec![(1.0 - trust) / workloads as f64; workloads];
        let mut residual_weights = default_residuals.map(|default| (1.0 - trust) * default);
        for study in &self.studies {
            let share = trust * similarity(study) / all;
            if share <= 0.0 || !share.is_finite() {
                workload_weights.push(0.0);
                continue;
            }
            let of_curve = MAX_CURVE_SHARE * study.explained_share;
            workload_weights.push(share * of_curve);
            for (number, weight) in &study.workloads {
                workload_weights[*number] += share * (1.0 - of_curve) * weight;
            }
            for (own, weight) in residual_weights.iter_mut().zip(study.residuals) {
                *own += share * weight;
            }
        }
        for weight in &mut workload_weights {
            *weight = libm::log(*weight);
        }
        LogPriors {
            workloads: workload_weights,
            residuals: residual_weights.map(libm::log),
        }
    }
}

/// Finds the workloads and residual processes that explain a study; `None` if its results are too few or invalid.
fn explain(knobs: &[KnobKind], study: &EarlierResults) -> Option<ExplainedStudy> {
    let reference = study.outcomes.get(study.reference)?;
    let (time, energy) = (reference.time.get(), reference.energy?.get());
    let power = energy / time / reference.gpus.max(1) as f64;
    let (space, measurements) = reference_level(knobs, study, time, energy)?;
    if measurements.len() < 2 || !(power > 0.0 && power.is_finite()) {
        return None;
    }
    let Explanation {
        log_weights,
        best_workload,
        explained_share,
        deviation,
    } = Model::explain(&space, power, &measurements)?;
    let mut residuals = [0.0; RESIDUAL_COUNT];
    for ((residual, _), weight) in normalised_weights(&log_weights, 1.0) {
        residuals[residual] += weight;
    }
    let workloads = normalised_weights(&log_weights, LIKELIHOOD_EXPONENT)
        .into_iter()
        .map(|((_, number), weight)| (number, weight))
        .collect();
    Some(ExplainedStudy {
        reference_power: power,
        workloads,
        residuals,
        best_workload,
        explained_share,
        deviation: Arc::new(deviation),
    })
}

/// Selects the points of a study that have the reference's level, with their results relative to the reference. Points
/// of other levels are left out, because their curves differ.
fn reference_level(
    knobs: &[KnobKind],
    study: &EarlierResults,
    time: f64,
    energy: f64,
) -> Option<(SearchSpace, Vec<Measurement>)> {
    let is_level = |knob: usize| knobs[knob] == KnobKind::Level;
    let coordinates = |point: &[f64], of_level: bool| -> Vec<f64> {
        let all = point.iter().enumerate();
        all.filter(|(knob, _)| is_level(*knob) == of_level)
            .map(|(_, value)| *value)
            .collect()
    };
    let level = coordinates(study.points.get(study.reference)?, true);
    let mut points = Vec::new();
    let mut values: Vec<LogRatios> = Vec::new();
    let mut reference = 0;
    let stride = study.points.len().div_ceil(MAX_POINTS_PER_STUDY).max(1);
    for (index, (point, outcome)) in study.points.iter().zip(&study.outcomes).enumerate() {
        if coordinates(point, true) != level {
            continue;
        }
        let log_ratios = [
            libm::log(outcome.time.get() / time),
            libm::log(outcome.energy?.get() / energy),
        ];
        if index == study.reference {
            reference = points.len();
        } else if index % stride != 0 || log_ratios.iter().any(|value| !value.is_finite()) {
            continue;
        }
        points.push(coordinates(point, false));
        values.push(log_ratios);
    }
    let others = knobs.iter().copied();
    let others = others.filter(|knob| *knob != KnobKind::Level).collect();
    let space = SearchSpace::new(others, points, reference).ok()?;
    let values = values.into_iter().enumerate();
    let measurements = values.map(|(point, log_ratios)| Measurement {
        point,
        log_ratios,
        noise: Noise::NONE,
    });
    Some((space, measurements.collect()))
}
