//! `fit STUDY`: a simulated GPU and workload that behave as those of a study.
//!
//! What the driver told of the board (caps, clocks, memory) is taken over. Power, voltage and work are moved until
//! the simulator gives the measured time and energy of every configuration. Each parameter is drawn towards what
//! is usual, weakly: a study that says more about it decides, and one that says nothing leaves it there.

mod board;
mod error;
mod measured;
mod physics;
mod profiles;
mod search;
mod text;

pub use error::StudyFitError;
pub use measured::{MeasuredPoint, MeasuredStudy, measured_study};
pub use text::profile_text;

use sweetspot_decide::Objective;
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};
use sweetspot_sim::{GpuProfile, WorkloadProfile};
use sweetspot_study::Configuration;

use board::Board;
use profiles::Made;
use search::{Search, Values};

/// A configuration as it was measured and as the fitted profile has it.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedPoint {
    /// What was set.
    pub configuration: Configuration,
    /// Items in a run.
    pub items: u64,
    /// Measured time and energy of a run.
    pub measured: (Seconds, Joules),
    /// The same, simulated without noise.
    pub fitted: (Seconds, Joules),
}

impl FittedPoint {
    /// How far the time is off.
    pub fn time_off(&self) -> Ratio {
        self.fitted.0 / self.measured.0 - Ratio::new(1.0)
    }

    /// How far the energy is off.
    pub fn energy_off(&self) -> Ratio {
        self.fitted.1 / self.measured.1 - Ratio::new(1.0)
    }
}

/// Deviations without their sign.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// Of all points.
    pub mean: Ratio,
    /// The largest.
    pub worst: Ratio,
}

impl Errors {
    fn of(deviations: impl Iterator<Item = Ratio>) -> Self {
        let all: Vec<f64> = deviations.map(|off| off.get().abs()).collect();
        Self {
            mean: Ratio::new(all.iter().sum::<f64>() / all.len().max(1) as f64),
            worst: Ratio::new(all.iter().copied().fold(0.0, f64::max)),
        }
    }
}

/// Of time and of energy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FitErrors {
    /// Of the times.
    pub time: Errors,
    /// Of the energies.
    pub energy: Errors,
}

impl FitErrors {
    fn of(points: &[FittedPoint]) -> Self {
        Self {
            time: Errors::of(points.iter().map(FittedPoint::time_off)),
            energy: Errors::of(points.iter().map(FittedPoint::energy_off)),
        }
    }

    /// Whether the profile can stand in for the GPU.
    pub fn is_near_enough(&self) -> bool {
        self.time.mean.max(self.energy.mean) <= FAR
    }
}

/// A mean deviation above this is too much to try anything with.
const FAR: Ratio = Ratio::new(0.05);

/// The best configuration by an objective, measured and fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedChoice {
    /// What is best.
    pub objective: Objective,
    /// The best by what was measured: an index into the points.
    pub measured: usize,
    /// The best by the profile.
    pub fitted: usize,
    /// What following the profile costs: its choice against the best, both as measured.
    pub regret: Ratio,
}

/// A simulated GPU and workload, and how near they are to the study.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedStudy {
    /// The GPU, with the digits that its file has.
    pub gpu: GpuProfile,
    /// The workload, likewise.
    pub workload: WorkloadProfile,
    /// The built-in profile of the same product, whose data sheet was taken.
    pub known: Option<String>,
    /// What neither the study nor a data sheet tells.
    pub assumed: Vec<String>,
    /// Parameters that were moved.
    pub parameters: usize,
    /// Every configuration, in the study's order.
    pub points: Vec<FittedPoint>,
    /// Of all points.
    pub errors: FitErrors,
    /// Of points that were left out of the fit in turn, every other one, where there are enough.
    pub left_out: Option<FitErrors>,
    /// Best settings.
    pub choices: Vec<FittedChoice>,
    /// What was tried in the study, in words; beyond it the profile is physics alone.
    pub tried: String,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Rounds in which the physics is corrected by the simulator.
const ROUNDS: usize = 6;
/// A round that gains less than this part is the last.
const ENOUGH: f64 = 1e-3;
/// With fewer points there is nothing to leave out.
const ENOUGH_TO_LEAVE_OUT: usize = 6;

/// Fits a GPU and a workload to a study.
pub fn fit_study(study: &MeasuredStudy) -> Result<FittedStudy, StudyFitError> {
    let powers = study.points.iter().map(|point| point.energy / point.time);
    let most = powers.fold(Watts::ZERO, Watts::max);
    let board = Board::new(study, most);
    let mut search = Search::new(study, &board.profile);
    let make =
        |search: &Search, at: &Values| Made::new(study, &board, &search.physics(at), &search.keys);
    let mut at = search.best()?;
    let mut best: Option<(Values, f64)> = None;
    for _ in 0..ROUNDS {
        let simulated = make(&search, &at).run_all(study)?;
        let cost = search.cost(&at, &simulated);
        let before = best.map_or(f64::INFINITY, |(_, cost)| cost);
        if cost < before {
            best = Some((at, cost));
        }
        let raw = search.raw(&at);
        for (point, (raw, simulated)) in search
            .points_mut()
            .iter_mut()
            .zip(raw.iter().zip(&simulated))
        {
            point.factor = [simulated.0 / raw.0, simulated.1 / raw.1];
        }
        if before - cost < ENOUGH * before && before.is_finite() {
            break;
        }
        at = search.from(&at).0;
    }
    let (at, _) = best.ok_or(StudyFitError::NoResult)?;
    let made = make(&search, &at).rounded();
    let points = points(study, &made)?;
    let left_out = match study.points.len() >= ENOUGH_TO_LEAVE_OUT {
        true => Some(left_out(study, &search, &make)?),
        false => None,
    };
    Ok(FittedStudy {
        errors: FitErrors::of(&points),
        left_out,
        choices: choices(&points, study.reference),
        parameters: search.keys.len(),
        points,
        gpu: made.gpu,
        workload: made.workload,
        known: board.known.clone(),
        assumed: board
            .assumed
            .iter()
            .map(|what| (*what).to_owned())
            .collect(),
        tried: study.tried.clone(),
        notes: study.notes.clone(),
    })
}

fn points(study: &MeasuredStudy, made: &Made) -> Result<Vec<FittedPoint>, StudyFitError> {
    let simulated = made.run_all(study)?;
    let all = study.points.iter().zip(simulated);
    let all = all.map(|(point, (time, energy))| FittedPoint {
        configuration: point.configuration.clone(),
        items: point.items,
        measured: (point.time, point.energy),
        fitted: (Seconds::new(time), Joules::new(energy)),
    });
    Ok(all.collect())
}

/// Fits to every other point and predicts the rest, both ways.
fn left_out(
    study: &MeasuredStudy,
    search: &Search,
    make: &impl Fn(&Search, &Values) -> Made,
) -> Result<FitErrors, StudyFitError> {
    let mut predicted = Vec::new();
    for parity in [0, 1] {
        let half = search.of(|index| index % 2 == parity);
        let made = make(&half, &half.best()?);
        let all = points(study, &made)?.into_iter().enumerate();
        predicted.extend(
            all.filter(|(index, _)| index % 2 != parity)
                .map(|(_, point)| point),
        );
    }
    Ok(FitErrors::of(&predicted))
}

/// The objectives of power_capping_2022, by item: a run may do more than another.
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
    type Value = Box<dyn Fn((f64, f64), (f64, f64)) -> f64>;
    let mut objectives: Vec<(&str, Value)> = vec![
        ("energy", Box::new(|at, _| at.1)),
        ("edp", Box::new(|at, _| at.0 * at.1)),
    ];
    if reference.is_some() {
        objectives.push(("eds:2.0", Box::new(sum(2.0))));
        objectives.push(("eds:1.5", Box::new(sum(1.5))));
    }
    let of = reference.unwrap_or(0);
    let least = |all: &[(f64, f64)], value: &Value| {
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
