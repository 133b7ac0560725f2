//! The parameters of a fit, their usual values, and the search for the best values.

use sweetspot_sim::GpuProfile;
use sweetspot_stats::{Bounds, fit};

use super::physics::{Conditions, Physics};
use super::{MeasuredPoint, MeasuredStudy, StudyFitError};

/// A parameter of the fit. Times, powers and the half-speed batch are fitted as logarithms. Shares are fitted with 1
/// added, because the optimiser's relative steps need values other than zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The GPU time per item.
    Item,
    /// The share of the GPU time that scales with the memory clock.
    MemoryShare,
    /// The share of an item's time in which the GPU waits for the host.
    Host,
    /// The power of the GPU while it waits for the program.
    Waiting,
    /// The power of the GPU's memory under load.
    MemoryPower,
    /// The power of the GPU's cores under load at the default clock.
    CorePower,
    /// The clock from which the voltage rises, relative to the default clock.
    Knee,
    /// The voltage at and below the clock [`Parameter::Knee`], relative to the voltage at the default clock.
    Floor,
    /// The time of kernel launches in an iteration, relative to the shortest iteration.
    Launch,
    /// The batch size that keeps half of the cores busy.
    HalfSpeed,
    /// The part of an iteration's memory time that is independent of the batch size, relative to its GPU time.
    MemoryPerBatch,
    /// The part of an iteration's host time that is independent of the batch size, relative to the shortest iteration.
    HostPerBatch,
}

use Parameter::{
    CorePower, Floor, HalfSpeed, Host, HostPerBatch, Item, Knee, Launch, MemoryPerBatch,
    MemoryPower, MemoryShare, Waiting,
};

/// The number of parameters in [`Parameter`].
const PARAMETERS: usize = 12;
/// The parameters that are fitted to every study; the others need several batch sizes.
const ALWAYS_FITTED: [Parameter; 8] = [
    Item,
    MemoryShare,
    Host,
    Waiting,
    MemoryPower,
    CorePower,
    Knee,
    Floor,
];

/// A value for each parameter, in the order of [`Parameter`].
pub type ParameterValues = [f64; PARAMETERS];

/// The usual value of a parameter, the uncertainty of that value, and the parameter's bounds.
#[derive(Clone, Copy)]
struct ParameterPrior {
    middle: f64,
    spread: f64,
    bounds: Bounds,
}

/// The assumed relative error of the model; it is added in quadrature to the errors of the measurements.
const MODEL_ERROR: f64 = 0.005;
/// The number of standard deviations beyond which a deviation is treated as an outlier.
const OUTLIER_SPREADS: f64 = 4.0;
/// The number of arithmetic units of a GPU on which a batch of one item occupies half of the units; from the H200 and
/// P40.
const UNITS_PER_ITEM: f64 = 600.0;
/// The largest allowed power at the lowest clock, relative to the lowest cap: the GPU must be able to stay below that
/// cap.
const LOWEST_CAP_MARGIN: f64 = 0.97;
/// The maximum number of iterations of the least-squares optimiser.
const MAX_STEPS: usize = 80;

/// The least-squares problem of fitting the closed-form model to a study.
pub struct StudyFit {
    pub parameters: Vec<Parameter>,
    priors: [ParameterPrior; PARAMETERS],
    points: Vec<FitTarget>,
    batch: f64,
    shortest: f64,
    lowest_clock: f64,
    lowest_cap: f64,
}

/// A measured point: its time and energy, their uncertainty, and the correction of the closed-form model there.
#[derive(Clone, Copy)]
pub struct FitTarget {
    conditions: Conditions,
    time: f64,
    energy: f64,
    spread: [f64; 2],
    /// The simulated time and energy, relative to those of the closed-form model.
    pub factor: [f64; 2],
}

impl StudyFit {
    /// Prepares the problem from a study and the profile of its GPU.
    pub fn new(study: &MeasuredStudy, gpu: &GpuProfile) -> Self {
        let points = study.points.iter().map(|point| FitTarget {
            conditions: Conditions::new(point, gpu),
            time: point.time.get(),
            energy: point.energy.get(),
            spread: point.relative_errors.map(|error| MODEL_ERROR.hypot(error)),
            factor: [1.0; 2],
        });
        let mut batches: Vec<u64> = study.points.iter().map(|point| point.batch).collect();
        batches.sort_unstable();
        batches.dedup();
        let mut priors = usual_priors(study, gpu);
        let mut parameters = ALWAYS_FITTED.to_vec();
        if batches.len() >= 2 {
            parameters.extend([Launch, HalfSpeed]);
        } else {
            priors[Launch as usize].middle = 1.0;
            if !study.batch_known {
                priors[HalfSpeed as usize].middle = f64::NEG_INFINITY;
            }
        }
        if batches.len() >= 3 {
            parameters.extend([MemoryPerBatch, HostPerBatch]);
        }
        Self {
            parameters,
            priors,
            points: points.collect(),
            batch: batches.last().copied().unwrap_or(1) as f64,
            shortest: smallest(study, |point| {
                point.time.get() * point.batch as f64 / point.items as f64
            }),
            lowest_clock: (gpu.core.min / gpu.core.default).get(),
            lowest_cap: gpu.cap.min.get(),
        }
    }

    /// The same problem with only some of the points; `is_used` gets the index of a point.
    pub fn subset(&self, is_used: impl Fn(usize) -> bool) -> Self {
        let points = self
            .points
            .iter()
            .enumerate()
            .filter(|(index, _)| is_used(*index));
        Self {
            parameters: self.parameters.clone(),
            priors: self.priors,
            points: points.map(|(_, point)| *point).collect(),
            ..*self
        }
    }

    /// The measured points, for changes to their correction factors.
    pub fn points_mut(&mut self) -> &mut [FitTarget] {
        &mut self.points
    }

    /// The closed-form model with these parameter values.
    pub fn physics(&self, at: &ParameterValues) -> Physics {
        let get = |parameter: Parameter| at[parameter as usize];
        let share = |parameter: Parameter| at[parameter as usize] - 1.0;
        let item = get(Item).exp();
        Physics {
            core: item * (1.0 - share(MemoryShare)),
            memory: item * share(MemoryShare),
            memory_per_batch: item * self.batch * share(MemoryPerBatch),
            host: item * share(Host) / (1.0 - share(Host)),
            host_per_batch: self.shortest * share(HostPerBatch),
            launch: self.shortest * share(Launch),
            half_speed_batch: get(HalfSpeed).exp(),
            batch: self.batch,
            waiting: get(Waiting).exp(),
            memory_power: get(MemoryPower).exp(),
            core_power: get(CorePower).exp(),
            knee: share(Knee),
            floor: share(Floor),
        }
    }

    /// The time and energy of each point by the closed-form model alone, without the simulator's correction.
    pub fn run_physics(&self, at: &ParameterValues) -> Vec<(f64, f64)> {
        let physics = self.physics(at);
        self.points
            .iter()
            .map(|point| physics.run(&point.conditions))
            .collect()
    }

    /// The residual of each time and energy, and of each parameter against its usual value.
    fn residuals(&self, at: &ParameterValues) -> Vec<f64> {
        let physics = self.physics(at);
        let mut all = Vec::with_capacity(2 * self.points.len() + PARAMETERS + 1);
        for point in &self.points {
            let (time, energy) = physics.run(&point.conditions);
            let [time_factor, energy_factor] = point.factor;
            all.push(soften(
                (time * time_factor / point.time).ln() / point.spread[0],
            ));
            all.push(soften(
                (energy * energy_factor / point.energy).ln() / point.spread[1],
            ));
        }
        for parameter in &self.parameters {
            let prior = &self.priors[*parameter as usize];
            all.push((at[*parameter as usize] - prior.middle) / prior.spread);
        }
        let least = physics.lowest_power(self.lowest_clock) / (LOWEST_CAP_MARGIN * self.lowest_cap);
        all.push(100.0 * least.ln().max(0.0));
        all
    }

    /// The sum of squares with simulated times and energies in place of those of the closed-form model.
    pub fn cost(&self, at: &ParameterValues, simulated: &[(f64, f64)]) -> f64 {
        let mut here = self.subset(|_| true);
        let raw = here.run_physics(at);
        for (point, (raw, simulated)) in here.points.iter_mut().zip(raw.iter().zip(simulated)) {
            point.factor = [simulated.0 / raw.0, simulated.1 / raw.1];
        }
        sum_of_squares(&here.residuals(at))
    }

    /// The usual values of all parameters.
    fn usual_values(&self) -> ParameterValues {
        self.priors.map(|prior| prior.middle)
    }

    /// Optimises the values from one starting set, and returns the best values and their sum of squares.
    pub fn optimise_from(&self, start: &ParameterValues) -> (ParameterValues, f64) {
        let with = |moved: &[f64]| {
            let mut at = *start;
            for (parameter, value) in self.parameters.iter().zip(moved) {
                at[*parameter as usize] = *value;
            }
            at
        };
        let from: Vec<f64> = self
            .parameters
            .iter()
            .map(|parameter| start[*parameter as usize])
            .collect();
        let bounds: Vec<Bounds> = self
            .parameters
            .iter()
            .map(|parameter| self.priors[*parameter as usize].bounds)
            .collect();
        let found = fit(
            |moved| self.residuals(&with(moved)),
            &from,
            &bounds,
            MAX_STEPS,
        );
        (with(&found.parameters), sum_of_squares(&found.residuals))
    }

    /// Optimises the values from several starting sets, and returns the best.
    pub fn optimise(&self) -> Result<ParameterValues, StudyFitError> {
        let mut best: Option<(ParameterValues, f64)> = None;
        for share in [0.15, 0.6] {
            for knee in [0.35, 0.6, 0.8] {
                for host in [0.02, 0.3] {
                    let mut start = self.usual_values();
                    start[MemoryShare as usize] = 1.0 + share;
                    start[Knee as usize] = 1.0 + knee;
                    start[Host as usize] = 1.0 + host;
                    let (found, cost) = self.optimise_from(&start);
                    if cost.is_finite() && best.is_none_or(|(_, least)| cost < least) {
                        best = Some((found, cost));
                    }
                }
            }
        }
        best.map(|(found, _)| found).ok_or(StudyFitError::NoResult)
    }
}

/// The smallest value of a function over a study's points.
fn smallest(study: &MeasuredStudy, value: impl Fn(&MeasuredPoint) -> f64) -> f64 {
    study.points.iter().map(value).fold(f64::INFINITY, f64::min)
}

/// The priors of all parameters, from the GPU and from the powers and times of the study.
fn usual_priors(study: &MeasuredStudy, gpu: &GpuProfile) -> [ParameterPrior; PARAMETERS] {
    let power = |point: &MeasuredPoint| (point.energy / point.time).get();
    let item = smallest(study, |point| point.time.get() / point.items as f64);
    let lowest_power = smallest(study, power);
    let highest_power = -smallest(study, |point| -power(point));
    let default_cap = gpu.cap.default.get();
    let waiting = (0.2 * default_cap).min(0.55 * lowest_power);
    let memory_power = (0.08 * default_cap).min(0.3 * lowest_power);
    let core_power = (1.05 * highest_power - waiting - memory_power).max(0.1 * highest_power);
    let half_speed = gpu.core.units as f64 / UNITS_PER_ITEM;
    let factor = |middle: f64, spread: f64, range: f64| ParameterPrior {
        middle: middle.ln(),
        spread,
        bounds: Bounds {
            low: (middle / range).ln(),
            high: (middle * range).ln(),
        },
    };
    let share = |middle: f64, spread: f64, low: f64, high: f64| ParameterPrior {
        middle: 1.0 + middle,
        spread,
        bounds: Bounds {
            low: 1.0 + low,
            high: 1.0 + high,
        },
    };
    let mut priors = [share(0.0, 1.0, 0.0, 1.0); PARAMETERS];
    priors[Item as usize] = factor(item, 10.0, 30.0);
    priors[MemoryShare as usize] = share(0.4, 0.25, 0.0, 0.97);
    priors[Host as usize] = share(0.08, 0.15, 0.0, 0.97);
    priors[Waiting as usize] = factor(waiting, 0.5, 10.0);
    priors[Waiting as usize].bounds.high = (0.99 * lowest_power).ln();
    priors[MemoryPower as usize] = factor(memory_power, 0.7, 20.0);
    priors[CorePower as usize] = factor(core_power, 0.7, 20.0);
    priors[Knee as usize] = share(0.55, 0.15, 0.02, 0.97);
    priors[Floor as usize] = share(0.75, 0.08, 0.4, 0.99);
    priors[Launch as usize] = share(0.2, 0.4, 0.0, 1.5);
    priors[HalfSpeed as usize] = factor(half_speed, 1.0, 100.0);
    priors[MemoryPerBatch as usize] = share(0.0, 0.05, 0.0, 0.5);
    priors[HostPerBatch as usize] = share(0.0, 0.1, 0.0, 1.0);
    priors
}

/// The sum of squares of the residuals.
fn sum_of_squares(residuals: &[f64]) -> f64 {
    residuals.iter().map(|r| r * r).sum()
}

/// Softens outliers: the square of the result grows quadratically with small deviations and linearly with large ones.
fn soften(against: f64) -> f64 {
    let part = against / OUTLIER_SPREADS;
    let square = 2.0 * OUTLIER_SPREADS * OUTLIER_SPREADS * ((1.0 + part * part).sqrt() - 1.0);
    square.sqrt().copysign(against)
}
