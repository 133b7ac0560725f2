//! The parameters of a fit, the profile that they give, and its deviation from the measured rows.

use sweetspot_quantity::{Bytes, Ratio, Seconds};
use sweetspot_sim::{GpuProfile, ItemWork, MemoryNeed, Mode, PhaseShare, WorkloadProfile};
use sweetspot_stats::Bounds;

use super::rows::MAX_ITEMS;
use super::simulate::simulate;
use super::{FitError, FitRequest, MeasuredRow, count_batches, count_settings};

/// A parameter of the fit. All except the memory share are fitted as logarithms, because they are positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The GPU time per item in the largest batch, in seconds: core and memory work.
    Item,
    /// The switching power of the workload, relative to that of the GPU's profile.
    Switching,
    /// The time in which the host launches the kernels of an iteration, in seconds.
    Launch,
    /// The batch size at which half of the arithmetic units are busy, the key `half_speed_batch`.
    HalfSpeed,
    /// The constant part of an iteration's memory time, relative to the GPU time of the largest batch.
    PerBatch,
    /// The share of the GPU time that scales with the memory clock.
    MemoryShare,
    /// The host time per item, relative to the GPU time per item.
    Host,
}

/// A value for every parameter, fitted or assumed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParameterValues([f64; 7]);

impl ParameterValues {
    pub fn get(&self, parameter: Parameter) -> f64 {
        self.0[parameter as usize]
    }

    fn set(mut self, parameter: Parameter, value: f64) -> Self {
        self.0[parameter as usize] = value;
        self
    }

    /// These values with some parameters replaced.
    pub fn with_values(self, parameters: &[Parameter], values: &[f64]) -> Self {
        let pairs = parameters.iter().zip(values);
        pairs.fold(self, |all, (parameter, value)| all.set(*parameter, *value))
    }
}

/// The assumed share of the GPU time that scales with the memory clock, as for convolutional networks in the built-in
/// profiles; rows at one setting cannot determine it.
const ASSUMED_MEMORY_SHARE: f64 = 0.3;

/// The arithmetic units of a GPU on which a batch of one item occupies half of them; from the H200 and P40.
const UNITS_PER_ITEM: f64 = 600.0;

/// The uncertainty of the assumed half-speed batch size, as the standard deviation of its logarithm.
const HALF_SPEED_SPREAD: f64 = 1.0;

/// The smallest batch size with reproducible times; smaller ones may be limited by the host, whose time varies.
const MIN_REPRODUCIBLE_BATCH: u64 = 64;
/// The tolerated relative deviation of rows whose speed the GPU limits.
const GPU_BOUND_TOLERANCE: f64 = 0.10;
/// The tolerated relative deviation of rows whose speed the host limits.
const HOST_BOUND_TOLERANCE: f64 = 0.35;

/// The multiple of the measured time that the fit aims at in host-limited rows: interruptions only make a host slower.
const HOST_SLOWDOWN: f64 = 1.04;

/// Relative deviations above this are probably outliers; their cost grows linearly, not quadratically.
const LARGE_DEVIATION: f64 = 0.05;

/// The share of the tolerated deviation above which a deviation costs more, to bring every row within its tolerance.
const TOLERATED_SHARE: f64 = 0.8;
/// The weight of the part of a deviation above [`TOLERATED_SHARE`].
const EXCESS_WEIGHT: f64 = 1.1;

/// The relative parameter value below which a parameter is set to zero, because no row can determine it.
const NEGLIGIBLE_VALUE: f64 = 1e-4;

/// The assumed ratio of the largest batch that fits into memory to the largest measured one.
const MEMORY_HEADROOM: f64 = 8.0;

/// The least-squares problem of fitting a workload to measured rows.
pub struct Model<'a> {
    request: &'a FitRequest,
    /// The largest batch size of the rows.
    largest: u64,
    /// The shortest time of an item in the largest batch, in seconds.
    item: f64,
    /// The shortest measured iteration, in seconds.
    shortest: f64,
    /// The tolerated relative deviation of each row, in the order of the rows.
    spread: Vec<f64>,
}

impl<'a> Model<'a> {
    /// Prepares the problem; an error if the GPU cannot run the configuration of a row.
    pub fn new(request: &'a FitRequest) -> Result<Self, FitError> {
        let rows = &request.rows;
        let times = rows.iter().map(|row| row.iteration.get());
        let shortest = times.fold(f64::INFINITY, f64::min);
        let largest = rows.iter().map(|row| row.batch).max().unwrap_or(1);
        let of_largest = rows.iter().filter(|row| row.batch == largest);
        let item = of_largest
            .map(|row| row.iteration.get() / largest as f64)
            .fold(f64::INFINITY, f64::min);
        let spread = rows.iter().map(|row| match is_host_bound(row, rows) {
            true => HOST_BOUND_TOLERANCE,
            false => GPU_BOUND_TOLERANCE,
        });
        let model = Self {
            request,
            largest,
            item,
            shortest,
            spread: spread.collect(),
        };
        // A setting that the GPU does not support is an error before the fit starts.
        let profile = model.profile(&model.assumed(), &[])?;
        for row in rows {
            simulate(request, &profile, row)?;
        }
        Ok(model)
    }

    /// The parameters that the rows can determine: those that are always fitted, and optional ones that are used only
    /// if they improve the fit. They are fewer than the measured values.
    pub fn parameters(&self) -> Result<(Vec<Parameter>, Vec<Parameter>), FitError> {
        let rows = &self.request.rows;
        let (batches, settings) = (count_batches(rows), count_settings(rows));
        let different = rows.iter().enumerate().filter(|(index, row)| {
            !rows[..*index]
                .iter()
                .any(|other| other.batch == row.batch && other.settings == row.settings)
        });
        let different = different.count();
        if different < 2 {
            return Err(FitError::TooFew { rows: different });
        }
        let mut parameters = vec![Parameter::Item, Parameter::Switching];
        if batches >= 2 {
            parameters.push(Parameter::Launch);
        }
        if batches >= 3 {
            parameters.push(Parameter::HalfSpeed);
        }
        if settings >= 3 {
            parameters.push(Parameter::MemoryShare);
        }
        parameters.truncate((2 * different).saturating_sub(1));
        let mut optional = Vec::new();
        if batches >= 4 {
            optional.push(Parameter::PerBatch);
        }
        if settings >= 4 {
            optional.push(Parameter::Host);
        }
        Ok((parameters, optional))
    }

    /// The assumed values of all parameters, with which the fit begins.
    fn assumed(&self) -> ParameterValues {
        let gpu = &self.request.gpu;
        ParameterValues([0.0; 7])
            .set(Parameter::Item, self.item.ln())
            .set(Parameter::Switching, 0.7f64.ln())
            .set(Parameter::Launch, f64::NEG_INFINITY)
            .set(Parameter::HalfSpeed, typical_half_speed(gpu).ln())
            .set(Parameter::PerBatch, f64::NEG_INFINITY)
            .set(Parameter::MemoryShare, ASSUMED_MEMORY_SHARE)
            .set(Parameter::Host, f64::NEG_INFINITY)
    }

    /// The sets of values from which the optimiser starts.
    pub fn starts(&self, parameters: &[Parameter]) -> Vec<ParameterValues> {
        let usual = self.assumed();
        let typical = usual.get(Parameter::HalfSpeed);
        let mut starts = Vec::new();
        for launch in [0.3, 0.95] {
            for half_speed in [0.3, 1.0, 3.0f64] {
                let values: Vec<f64> = parameters
                    .iter()
                    .map(|parameter| match parameter {
                        Parameter::Launch => (launch * self.shortest).ln(),
                        Parameter::HalfSpeed => typical + half_speed.ln(),
                        Parameter::PerBatch => 0.05f64.ln(),
                        Parameter::Host => 0.1f64.ln(),
                        other => usual.get(*other),
                    })
                    .collect();
                starts.push(usual.with_values(parameters, &values));
            }
        }
        starts.dedup();
        starts
    }

    /// The lower and upper bound of each parameter.
    pub fn bounds(&self, parameters: &[Parameter]) -> Vec<Bounds> {
        let around = |middle: f64, factor: f64| (middle - factor.ln(), middle + factor.ln());
        let typical = self.assumed().get(Parameter::HalfSpeed);
        parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Item => around(self.item.ln(), 30.0),
                Parameter::Switching => (0.01f64.ln(), 3f64.ln()),
                Parameter::Launch => (
                    (NEGLIGIBLE_VALUE * self.shortest).ln(),
                    (10.0 * self.shortest).ln(),
                ),
                Parameter::HalfSpeed => around(typical, 50.0),
                Parameter::PerBatch => (NEGLIGIBLE_VALUE.ln(), 0.0),
                Parameter::MemoryShare => (0.02, 0.95),
                Parameter::Host => (NEGLIGIBLE_VALUE.ln(), 10f64.ln()),
            })
            .map(|(low, high)| Bounds { low, high })
            .collect()
    }

    /// The residual of each measured value: the logarithm of simulated over measured time or power, relative to the
    /// tolerated deviation; large ones are softened. The assumed half-speed batch size adds one more residual.
    pub fn residuals(&self, at: &ParameterValues, parameters: &[Parameter]) -> Vec<f64> {
        let rows = &self.request.rows;
        let count = 2 * rows.len() + 1;
        let Ok(profile) = self.profile(at, parameters) else {
            return vec![1e3; count];
        };
        let mut all = Vec::with_capacity(count);
        for (row, spread) in rows.iter().zip(&self.spread) {
            let Ok((iteration, power)) = simulate(self.request, &profile, row) else {
                return vec![1e3; count];
            };
            let slower = match is_host_bound(row, rows) {
                true => HOST_SLOWDOWN,
                false => 1.0,
            };
            let time = iteration / (row.iteration * slower);
            all.push(soften(time.get().ln(), *spread));
            all.push(soften((power / row.power).get().ln(), *spread));
        }
        let deviation = at.get(Parameter::HalfSpeed) - self.assumed().get(Parameter::HalfSpeed);
        all.push(match parameters.contains(&Parameter::HalfSpeed) {
            true => deviation / HALF_SPEED_SPREAD,
            false => 0.0,
        });
        all
    }

    /// The workload profile with these parameter values.
    pub fn profile(
        &self,
        at: &ParameterValues,
        parameters: &[Parameter],
    ) -> Result<WorkloadProfile, FitError> {
        let request = self.request;
        let item = at.get(Parameter::Item).exp();
        let share = at.get(Parameter::MemoryShare);
        // A value that is too small to be determined is zero.
        let part = |parameter: Parameter, of: f64| {
            let value = at.get(parameter).exp();
            Seconds::new(if value <= 1.01 * NEGLIGIBLE_VALUE * of {
                0.0
            } else {
                value
            })
        };
        let capacity = request.gpu.memory.capacity;
        let fixed = Bytes::new(0.5e9).min(capacity * 0.1);
        let names = |wanted: &[(Parameter, &[&str])]| -> Vec<String> {
            let free = wanted
                .iter()
                .filter(|(parameter, _)| parameters.contains(parameter));
            free.flat_map(|(_, names)| names.iter().map(|name| (*name).to_owned()))
                .collect()
        };
        Ok(WorkloadProfile {
            network: request.network.clone(),
            mode: request.mode,
            batch: self.largest,
            half_speed_batch: at.get(Parameter::HalfSpeed).exp(),
            split_batch: false,
            gradients: Bytes::ZERO,
            fitted: names(&[(Parameter::HalfSpeed, &["half_speed_batch"])]),
            memory: MemoryNeed {
                fixed,
                per_item: (capacity - fixed) / (MEMORY_HEADROOM * self.largest as f64),
            },
            phases: default_phases(request.mode),
            conv_algorithms: Vec::new(),
            datasets: Vec::new(),
            on: vec![ItemWork {
                gpu: request.gpu_name.clone(),
                fitted: names(&[
                    (Parameter::Host, &["host"]),
                    (Parameter::Launch, &["launch"]),
                    (Parameter::Item, &["core"]),
                    (Parameter::MemoryShare, &["memory"]),
                    (Parameter::PerBatch, &["memory_per_batch"]),
                    (Parameter::Switching, &["switching"]),
                ]),
                items: self.usual_items(),
                startup: Seconds::ZERO,
                host_per_batch: Seconds::ZERO,
                host: part(Parameter::Host, 1.0) * item,
                launch: part(Parameter::Launch, self.shortest),
                core: Seconds::new(item * (1.0 - share)),
                memory: Seconds::new(item * share),
                memory_per_batch: part(Parameter::PerBatch, 1.0) * (item * self.largest as f64),
                switching: Ratio::new(at.get(Parameter::Switching).exp()),
                memory_activity: Ratio::new(1.0),
                iterations: Vec::new(),
                steps: Default::default(),
            }],
        })
    }

    /// The largest number of items of a row with the largest batch size.
    fn usual_items(&self) -> u64 {
        let of_largest = self
            .request
            .rows
            .iter()
            .filter(|row| row.batch == self.largest);
        let iterations = of_largest.map(|row| row.iterations).max().unwrap_or(1);
        iterations.saturating_mul(self.largest).min(MAX_ITEMS)
    }
}

/// The usual half-speed batch size of a GPU, from its number of arithmetic units.
fn typical_half_speed(gpu: &GpuProfile) -> f64 {
    gpu.core.units as f64 / UNITS_PER_ITEM
}

/// Whether the host limits a row: a small batch whose items take more than twice the time of the largest batch's.
fn is_host_bound(row: &MeasuredRow, rows: &[MeasuredRow]) -> bool {
    let each = |row: &MeasuredRow| row.iteration.get() / row.batch as f64;
    let alike = rows.iter().filter(|other| other.settings == row.settings);
    let largest = alike.max_by_key(|other| other.batch);
    row.batch < MIN_REPRODUCIBLE_BATCH
        && largest.is_some_and(|largest| each(row) > 2.0 * each(largest))
}

/// The residual of a deviation with this tolerance. Its square grows quadratically for small deviations and linearly
/// for large ones, until they exceed [`TOLERATED_SHARE`].
fn soften(deviation: f64, spread: f64) -> f64 {
    let against = deviation / LARGE_DEVIATION;
    let square = 2.0 * ((1.0 + against * against).sqrt() - 1.0);
    let too_much = (deviation.abs() - TOLERATED_SHARE * spread).max(0.0);
    (square.sqrt() * LARGE_DEVIATION + EXCESS_WEIGHT * too_much).copysign(deviation) / spread
}

/// The assumed phases of an iteration and their shares of the work.
pub(crate) fn default_phases(mode: Mode) -> Vec<PhaseShare> {
    let phase = |name: &str, share: f64| PhaseShare {
        name: name.to_owned(),
        core: Ratio::new(share),
        memory: Ratio::new(share),
        switching: Ratio::new(1.0),
    };
    match mode {
        Mode::Infer => vec![phase("forward", 1.0)],
        Mode::Train => vec![phase("forward", 0.333), phase("backward", 0.667)],
    }
}
