//! Fits a simulated GPU and workload to a study.
//!
//! The caps, clocks and memory of the GPU are those that its driver reported. Power, voltage and work are fitted until
//! the simulator gives the measured time and energy of every configuration. A weak prior draws each parameter towards
//! its usual value; measurements that determine the parameter outweigh the prior.

mod base_gpu;
mod error;
mod measured;
mod parameters;
mod physics;
mod profiles;
mod text;

pub use error::StudyFitError;
pub use measured::{MeasuredPoint, MeasuredStudy, measured_study};
pub use text::profile_text;

use sweetspot_decide::Objective;
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};
use sweetspot_sim::{GpuProfile, WorkloadProfile};
use sweetspot_study::Configuration;

use base_gpu::BaseGpu;
use parameters::{ParameterValues, StudyFit};
use profiles::FittedProfiles;

/// A configuration with its measured and its fitted time and energy.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedPoint {
    /// The configuration in the study.
    pub configuration: Configuration,
    /// The number of items in a run.
    pub items: u64,
    /// The measured time and energy of a run.
    pub measured: (Seconds, Joules),
    /// The time and energy of a run that the fitted profile predicts, without noise.
    pub fitted: (Seconds, Joules),
}

impl FittedPoint {
    /// The relative deviation of the fitted from the measured time; positive if the fitted time is longer.
    pub fn time_deviation(&self) -> Ratio {
        self.fitted.0 / self.measured.0 - Ratio::new(1.0)
    }

    /// The relative deviation of the fitted from the measured energy.
    pub fn energy_deviation(&self) -> Ratio {
        self.fitted.1 / self.measured.1 - Ratio::new(1.0)
    }
}

/// The mean and the largest absolute deviation over several points.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// The mean of the absolute relative deviations.
    pub mean: Ratio,
    /// The largest absolute relative deviation.
    pub worst: Ratio,
}

impl Errors {
    /// Summarises relative deviations by their absolute values.
    fn from_deviations(deviations: impl Iterator<Item = Ratio>) -> Self {
        let all: Vec<f64> = deviations.map(|off| off.get().abs()).collect();
        Self {
            mean: Ratio::new(all.iter().sum::<f64>() / all.len().max(1) as f64),
            worst: Ratio::new(all.iter().copied().fold(0.0, f64::max)),
        }
    }
}

/// The deviations of time and energy over several points.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FitErrors {
    /// The deviations of the predicted from the measured times.
    pub time: Errors,
    /// The deviations of the predicted from the measured energies.
    pub energy: Errors,
}

impl FitErrors {
    /// Summarises the deviations of these points.
    fn from_points(points: &[FittedPoint]) -> Self {
        Self {
            time: Errors::from_deviations(points.iter().map(FittedPoint::time_deviation)),
            energy: Errors::from_deviations(points.iter().map(FittedPoint::energy_deviation)),
        }
    }

    /// Whether the profile is accurate enough to be used in place of the GPU.
    pub fn is_accurate(&self) -> bool {
        self.time.mean.max(self.energy.mean) <= MAX_MEAN_DEVIATION
    }
}

/// The largest mean deviation of an accurate profile.
const MAX_MEAN_DEVIATION: Ratio = Ratio::new(0.05);

/// The best configuration for an objective, once by the measurements and once by the profile.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedChoice {
    /// The objective for which the best configuration is sought.
    pub objective: Objective,
    /// The index of the best point by the measurements.
    pub measured: usize,
    /// The index of the best point by the profile.
    pub fitted: usize,
    /// How much worse the profile's choice is than the best point, by the measurements, as a fraction of the best
    /// value.
    pub regret: Ratio,
}

/// A simulated GPU and workload, and their deviations from the study.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedStudy {
    /// The fitted GPU, with its numbers rounded as in its file.
    pub gpu: GpuProfile,
    /// The fitted workload, with its numbers rounded as in its file.
    pub workload: WorkloadProfile,
    /// The name of the built-in profile of the same product, whose data sheet values are used; `None` if there is none.
    pub built_in: Option<String>,
    /// The values that were assumed, because neither the study nor a data sheet contains them.
    pub assumed: Vec<String>,
    /// The number of fitted parameters.
    pub parameters: usize,
    /// Every configuration with its measured and fitted values, in the study's order.
    pub points: Vec<FittedPoint>,
    /// The deviations of all points.
    pub errors: FitErrors,
    /// The deviations of points that a fit did not use: fits to every other point predict the rest. `None` if there are
    /// too few points.
    pub cross_validation: Option<FitErrors>,
    /// For each of several objectives, the best configuration by the measurements and by the profile.
    pub choices: Vec<FittedChoice>,
    /// The ranges of settings that the study measured, in words; outside them the profile extrapolates.
    pub explored: String,
    /// Warnings for the user about missing or excluded data.
    pub notes: Vec<String>,
}

/// The maximum number of rounds in which simulations correct the closed-form model.
const MAX_ROUNDS: usize = 6;
/// The relative reduction of the cost below which no further round of corrections follows.
const MIN_IMPROVEMENT: f64 = 1e-3;
/// The smallest number of points for a cross-validation.
const MIN_POINTS_FOR_VALIDATION: usize = 6;

/// Fits a GPU and a workload to a study.
pub fn fit_study(study: &MeasuredStudy) -> Result<FittedStudy, StudyFitError> {
    let powers = study.points.iter().map(|point| point.energy / point.time);
    let most = powers.fold(Watts::ZERO, Watts::max);
    let base = BaseGpu::new(study, most);
    let mut fit = StudyFit::new(study, &base.profile);
    let make = |fit: &StudyFit, at: &ParameterValues| {
        FittedProfiles::new(study, &base, &fit.physics(at), &fit.parameters)
    };
    let mut at = fit.optimise()?;
    let mut best: Option<(ParameterValues, f64)> = None;
    for _ in 0..MAX_ROUNDS {
        let simulated = make(&fit, &at).run_all(study)?;
        let cost = fit.cost(&at, &simulated);
        let before = best.map_or(f64::INFINITY, |(_, cost)| cost);
        if cost < before {
            best = Some((at, cost));
        }
        let raw = fit.run_physics(&at);
        for (point, (raw, simulated)) in fit.points_mut().iter_mut().zip(raw.iter().zip(&simulated))
        {
            point.factor = [simulated.0 / raw.0, simulated.1 / raw.1];
        }
        if before - cost < MIN_IMPROVEMENT * before && before.is_finite() {
            break;
        }
        at = fit.optimise_from(&at).0;
    }
    let (at, _) = best.ok_or(StudyFitError::NoResult)?;
    let profiles = make(&fit, &at).rounded();
    let points = fitted_points(study, &profiles)?;
    let cross_validation = match study.points.len() >= MIN_POINTS_FOR_VALIDATION {
        true => Some(cross_validation(study, &fit, &make)?),
        false => None,
    };
    Ok(FittedStudy {
        errors: FitErrors::from_points(&points),
        cross_validation,
        choices: choices(&points, study.reference),
        parameters: fit.parameters.len(),
        points,
        gpu: profiles.gpu,
        workload: profiles.workload,
        built_in: base.built_in.clone(),
        assumed: base.assumed.iter().map(|what| (*what).to_owned()).collect(),
        explored: study.explored.clone(),
        notes: study.notes.clone(),
    })
}

/// Combines the points of a study with the times and energies that the profiles predict.
fn fitted_points(
    study: &MeasuredStudy,
    profiles: &FittedProfiles,
) -> Result<Vec<FittedPoint>, StudyFitError> {
    let simulated = profiles.run_all(study)?;
    let all = study.points.iter().zip(simulated);
    let all = all.map(|(point, (time, energy))| FittedPoint {
        configuration: point.configuration.clone(),
        items: point.items,
        measured: (point.time, point.energy),
        fitted: (Seconds::new(time), Joules::new(energy)),
    });
    Ok(all.collect())
}

/// Fits the model to every other point and predicts the remaining points, once for each half.
fn cross_validation(
    study: &MeasuredStudy,
    fit: &StudyFit,
    make: &impl Fn(&StudyFit, &ParameterValues) -> FittedProfiles,
) -> Result<FitErrors, StudyFitError> {
    let mut predicted = Vec::new();
    for parity in [0, 1] {
        let half = fit.subset(|index| index % 2 == parity);
        let profiles = make(&half, &half.optimise()?);
        let all = fitted_points(study, &profiles)?.into_iter().enumerate();
        predicted.extend(
            all.filter(|(index, _)| index % 2 != parity)
                .map(|(_, point)| point),
        );
    }
    Ok(FitErrors::from_points(&predicted))
}

/// The best points by the objectives of power_capping_2022, per item, because runs may have different numbers of items.
fn choices(points: &[FittedPoint], reference: Option<usize>) -> Vec<FittedChoice> {
    let each = |point: &FittedPoint, (time, energy): (Seconds, Joules)| {
        let items = point.items as f64;
        (time.get() / items, energy.get() / items)
    };
    let measured: Vec<_> = points
        .iter()
        .map(|point| each(point, point.measured))
        .collect();
    let fitted: Vec<_> = points
        .iter()
        .map(|point| each(point, point.fitted))
        .collect();
    let sum = |k: f64| {
        move |at: (f64, f64), of: (f64, f64)| (k - 1.0) / k * at.1 / of.1 + at.0 / of.0 / k
    };
    /// A function that computes an objective from the time and energy of a point and of the reference.
    type ObjectiveFunction = Box<dyn Fn((f64, f64), (f64, f64)) -> f64>;
    let mut objectives: Vec<(&str, ObjectiveFunction)> = vec![
        ("energy", Box::new(|at, _| at.1)),
        ("edp", Box::new(|at, _| at.0 * at.1)),
    ];
    if reference.is_some() {
        objectives.push(("eds:2.0", Box::new(sum(2.0))));
        objectives.push(("eds:1.5", Box::new(sum(1.5))));
    }
    let of = reference.unwrap_or(0);
    let least = |all: &[(f64, f64)], value: &ObjectiveFunction| {
        let value = |index: &usize| value(all[*index], all[of]);
        (0..all.len())
            .min_by(|a, b| value(a).total_cmp(&value(b)))
            .unwrap_or(0)
    };
    let chosen = objectives.iter().filter_map(|(name, value)| {
        let (best, by_profile) = (least(&measured, value), least(&fitted, value));
        let at = |index: usize| value(measured[index], measured[of]);
        Some(FittedChoice {
            objective: name.parse().ok()?,
            measured: best,
            fitted: by_profile,
            regret: Ratio::new(at(by_profile) / at(best) - 1.0),
        })
    });
    chosen.collect()
}
