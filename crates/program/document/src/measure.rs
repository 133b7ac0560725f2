//! Measured runs of a command, `sweetspot.run/1`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::calibrate::Calibration;
use crate::common::{EnergyOf, Machine, Named, SchemaName, Summary};
use crate::node::{HostEnergy, NodeEnergy};
use crate::serving::Serving;

/// The measured runs of a command. Values are in SI units, with fractions instead of percentages; a key is absent if
/// its value is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Measurement {
    /// The measurement consists of one run.
    Run(Box<Run>),
    /// The measurement consists of several runs, or of none.
    Runs(Box<Runs>),
}

/// Several runs of a command.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Runs {
    /// What all runs of the measurement have in common.
    #[serde(flatten)]
    pub common: MeasurementInfo,
    /// The runs, in the order in which they were made.
    pub runs: Vec<Run>,
    /// The means over the successful runs.
    pub summary: RunsSummary,
}

/// The means over several runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunsSummary {
    /// The time of a run in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_s: Option<Summary>,
    /// The energy of all devices in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<Summary>,
    /// The throughput of a run in items per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_per_s: Option<Summary>,
}

/// What all runs of a measurement have in common.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MeasurementInfo {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::RUN))]
    pub schema: SchemaName,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The machine on which the command ran.
    pub machine: Machine,
    /// The requested part of each run over which time and energy are measured, as on the command line.
    pub window: String,
    /// The energy measurement method that the user requested.
    pub method: String,
    /// Why there are fewer runs than requested; absent if all were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The energy of the idle devices; absent if the user did not request it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// What measuring itself cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observer: Option<ObserverCost>,
}

/// What measuring itself cost, all runs together.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ObserverCost {
    /// The processor time of the measuring program, all threads together, in seconds.
    #[schemars(range(min = 0))]
    pub cpu_time_s: f64,
    /// The time in which the runs were measured, in seconds.
    #[schemars(range(min = 0))]
    pub time_s: f64,
    /// How much more power the GPUs draw while they are read.
    pub gpu_power: ObserverPower,
    /// How much more power the processors and their memory draw while devices are read.
    pub host_power: ObserverPower,
}

/// A difference of powers, or why it is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ObserverPower {
    /// The power while devices are read, less the power while they are not, in watts; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// The smallest difference that the counters can show, in watts; absent if the power is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution_w: Option<f64>,
    /// Why the power is unknown; absent if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// The energy that the devices use while idle.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Idle {
    /// The energy of all devices while idle.
    #[serde(flatten)]
    pub energy: TotalEnergy,
    /// How long the idle devices were measured, in seconds.
    pub time_s: f64,
}

/// An energy and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TotalEnergy {
    /// The energy in joules.
    pub energy_j: f64,
    /// The ends of the energy's 95 % confidence interval, in joules.
    pub interval95_j: [f64; 2],
}

/// One run of a command.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Run {
    /// What all runs of the measurement have in common.
    #[serde(flatten)]
    pub common: MeasurementInfo,
    /// The exit code of the command, or 128 plus the signal number if a signal ended it.
    pub exit_code: i32,
    /// The number of the signal that ended the command; absent if it exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The length of the measurement window in seconds.
    pub time_s: f64,
    /// The time of the whole run in seconds.
    pub run_time_s: f64,
    /// Why the measurement window is the whole run instead of the requested part; absent if it is as requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_problem: Option<String>,
    /// The energy of all devices in the measurement window; absent if any device's energy is unknown.
    #[serde(flatten)]
    pub energy: Option<TotalEnergy>,
    /// The average power of all devices in the measurement window, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_power_w: Option<f64>,
    /// The energy beyond that of the idle devices in the same time; absent if idle was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above_idle: Option<TotalEnergy>,
    /// Whose energy counts, for instance for the energy per item.
    pub energy_of: EnergyOf,
    /// The energy of each device.
    pub devices: Vec<DeviceEnergy>,
    /// The energy of the processors and their memory; absent if it was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostEnergy>,
    /// The energy of the whole machine; absent without a power meter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeEnergy>,
    /// The time and energy of each phase that the command marked; absent if it marked none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<Named<Phase>>,
    /// Why the energy of the phases that the command marked is unknown; absent if it is known. Their times may be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases_refused: Option<String>,
    /// The number of items that the command processed in the measurement window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<f64>,
    /// The throughput in the measurement window, in items per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_per_s: Option<f64>,
    /// The energy per item in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_per_item_j: Option<f64>,
    /// What a server did in the measurement window, from its metrics page; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<Serving>,
    /// The last value of each named quantity that the command reported, such as the accuracy.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, f64>,
    /// Warnings about the measured values of this run.
    pub warnings: Vec<String>,
}

/// The energy of one device in the measurement window of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeviceEnergy {
    /// The UUID of the device.
    pub uuid: String,
    /// The product name of the device.
    pub name: String,
    /// The measured energy; absent if it is unknown.
    #[serde(flatten)]
    pub measured: Option<MeasuredEnergy>,
    /// Why the energy of the device is unknown; absent if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The calibration that was applied to all energies of the device; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// What limited the load on the device; absent if nothing is known about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<LoadLimits>,
}

/// What limited the load on a device in the measurement window, and the evidence for it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadLimits {
    /// What limited the load: `power-cap`, `temperature`, `power-brake`, `memory`, `compute`, `host`, `idle` or
    /// `unknown`.
    pub limited_by: &'static str,
    /// The setting that saves energy: `power-cap`, `core-clock`, `batch-or-input` or `none`.
    pub knob: &'static str,
    /// Whether the power cap limited the load; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap_binds: Option<bool>,
    /// The power cap in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap_w: Option<f64>,
    /// The share of the time in which the power cap throttled the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled_by_power_cap: Option<f64>,
    /// The share of the time in which the temperature throttled the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled_by_temperature: Option<f64>,
    /// The share of the time in which the server's power supply throttled the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled_by_power_brake: Option<f64>,
    /// The share of the cores that had work, averaged over the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_use: Option<f64>,
    /// The share of the time in which the tensor units worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor_use: Option<f64>,
    /// The share of the memory's bandwidth that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bandwidth_use: Option<f64>,
    /// The decision as a sentence.
    pub text: String,
}

/// The energy of a device, and how it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MeasuredEnergy {
    /// The energy by the best available method.
    #[serde(flatten)]
    pub energy: EnergyByMethod,
    /// The energy by other methods, each compared with the best one.
    pub checks: Vec<EnergyCheck>,
    /// The parts of the measurement window in which a sensor had no readings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<SensorGap>,
    /// Notes on how the energy was measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The part of the measurement window that the energy covers, in seconds; absent if it is the whole window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covered_s: Option<f64>,
}

/// An energy by one measurement method.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EnergyByMethod {
    /// The energy and its uncertainty.
    #[serde(flatten)]
    pub energy: TotalEnergy,
    /// The average power in watts, by this method.
    pub average_power_w: f64,
    /// The name of the measurement method.
    pub method: String,
}

/// An energy by another method, compared with the best one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EnergyCheck {
    /// The energy by this method.
    #[serde(flatten)]
    pub energy: EnergyByMethod,
    /// The difference from the energy by the best method, as a fraction of the latter.
    pub difference: f64,
    /// Whether both methods agree within their uncertainty.
    pub agrees: bool,
}

/// A part of the measurement window in which a sensor had no readings.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SensorGap {
    /// The name of the sensor that had no readings.
    pub sensor: String,
    /// The length of the gap in seconds.
    pub time_s: f64,
    /// Why the sensor had no readings.
    pub reason: String,
}

/// The sum over all occurrences of a phase in a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Phase {
    /// The energy of all occurrences of the phase; absent if the readings do not tell the phases apart.
    #[serde(flatten)]
    pub energy: Option<TotalEnergy>,
    /// The time of all occurrences of the phase, in seconds.
    pub time_s: f64,
    /// The average power in the phase, in watts; absent if its energy is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// The number of occurrences of the phase.
    pub count: usize,
}
