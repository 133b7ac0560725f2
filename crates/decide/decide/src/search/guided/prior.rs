//! The prior from earlier studies: which of the possible workloads explain them, and how noisy they are.

use super::model::{Model, RESIDUALS};
use super::posterior::{LogRatios, Measurement, normalised_weights};
use crate::search::{EarlierResults, KnobKind, Noise, SearchSpace};

/// The maximum weight of earlier studies; the rest is the prior without any.
const MAX_TRUST: f64 = 0.8;
/// The standard deviation of the similarity of studies over the power of their reference, in logarithms.
const POWER_SIMILARITY: f64 = 0.5;
/// The exponent of a study's likelihood: a study says much about its own workload and less about others.
const LIKELIHOOD_EXPONENT: f64 = 0.3;
/// The maximum number of points that are used of a study; more of them teach little.
const MAX_POINTS_PER_STUDY: usize = 12;

/// What earlier studies say about the workloads to expect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prior {
    studies: Vec<ExplainedStudy>,
}

/// The workloads and residuals that explain an earlier study.
#[derive(Clone, Debug, PartialEq)]
struct ExplainedStudy {
    /// The power of the reference on each GPU, in watts.
    reference_power: f64,
    /// The numbers of the workloads that explain the study, with their weights.
    workloads: Vec<(usize, f64)>,
    /// The weight of each residual.
    residuals: [f64; RESIDUALS],
}

/// The logarithms of prior weights.
pub(super) struct LogPriors {
    /// The log prior of each workload.
    pub(super) workloads: Vec<f64>,
    /// The log prior of each residual.
    pub(super) residuals: [f64; RESIDUALS],
}

impl Prior {
    /// Learns from earlier studies with these knobs. Studies without energies or with a single point are
    /// ignored.
    pub fn learn(knobs: &[KnobKind], earlier: &[EarlierResults]) -> Self {
        let studies = earlier.iter().filter_map(|study| explain(knobs, study));
        Self {
            studies: studies.collect(),
        }
    }

    /// This prior with more studies added.
    pub(super) fn with(&self, knobs: &[KnobKind], earlier: &[EarlierResults]) -> Self {
        let more = Self::learn(knobs, earlier).studies;
        Self {
            studies: self.studies.iter().cloned().chain(more).collect(),
        }
    }

    /// This prior without one of its studies.
    pub fn without(&self, study: usize) -> Self {
        let mut studies = self.studies.clone();
        if study < studies.len() {
            studies.remove(study);
        }
        Self { studies }
    }

    /// Whether there are no studies to learn from.
    pub fn is_empty(&self) -> bool {
        self.studies.is_empty()
    }

    /// The log priors for a job that draws `power` watts on each GPU at the reference, where
    /// `default_residuals` are the probabilities of the residuals without earlier studies.
    pub(super) fn log_priors(
        &self,
        power: f64,
        workloads: usize,
        default_residuals: [f64; RESIDUALS],
    ) -> LogPriors {
        let similarity = |study: &ExplainedStudy| {
            let distance = libm::log(study.reference_power / power) / POWER_SIMILARITY;
            libm::exp(-0.5 * distance * distance)
        };
        let all: f64 = self.studies.iter().map(similarity).sum();
        let trust = MAX_TRUST * all / (all + 0.5);
        let mut of_workloads = vec![(1.0 - trust) / workloads as f64; workloads];
        let mut of_residuals = default_residuals.map(|default| (1.0 - trust) * default);
        for study in &self.studies {
            let share = trust * similarity(study) / all;
            if share <= 0.0 || !share.is_finite() {
                continue;
            }
            for (number, weight) in &study.workloads {
                of_workloads[*number] += share * weight;
            }
            for (own, weight) in of_residuals.iter_mut().zip(study.residuals) {
                *own += share * weight;
            }
        }
        for weight in &mut of_workloads {
            *weight = libm::log(*weight);
        }
        LogPriors {
            workloads: of_workloads,
            residuals: of_residuals.map(libm::log),
        }
    }
}

/// Finds the workloads and residuals that explain a study.
fn explain(knobs: &[KnobKind], study: &EarlierResults) -> Option<ExplainedStudy> {
    let reference = study.outcomes.get(study.reference)?;
    let (time, energy) = (reference.time.get(), reference.energy?.get());
    let power = energy / time / reference.gpus.max(1) as f64;
    let (space, measurements) = reference_level(knobs, study, time, energy)?;
    if measurements.len() < 2 || !(power > 0.0 && power.is_finite()) {
        return None;
    }
    let log_weights = Model::explain(&space, power, &measurements);
    let mut residuals = [0.0; RESIDUALS];
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
    })
}

/// The points of a study at the reference's level, relative to the reference: other levels have curves of
/// their own.
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
