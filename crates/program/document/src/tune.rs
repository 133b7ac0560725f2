//! A training run that was tuned while it ran, `sweetspot.tune/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{SchemaName, TimeAndEnergy};
use crate::measure::LoadLimits;

/// A training run that was tuned while it ran. Values are in SI units, with fractions instead of percentages; a key is
/// absent if its value is unknown. Times are in seconds since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Tuning {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::TUNE))]
    pub schema: SchemaName,
    /// The name of the workload.
    pub workload: String,
    /// The devices that were tuned.
    pub devices: Vec<Device>,
    /// The name of the knob that was tuned.
    pub knob: String,
    /// Whether the devices could get settings of their own (`each`) or all got the same (`same`).
    pub settings: String,
    /// The name of the objective that was optimised.
    pub objective: String,
    /// The limits that the chosen setting must meet, as on the command line.
    pub limits: Vec<String>,
    /// The name of the search strategy.
    pub strategy: String,
    /// How the tuning ended.
    pub status: TuningStatus,
    /// Why the tuning was given up; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the tuning was given up, in seconds since the start; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gave_up_at_s: Option<f64>,
    /// True if no tried setting met the limits; otherwise absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside_limits: Option<bool>,
    /// The settings that all others are compared with.
    pub reference: DeviceSettings,
    /// The settings that were chosen last; absent if none were chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<DeviceSettings>,
    /// The expected loss of the choice against the true best setting, as a fraction of the best value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_regret: Option<f64>,
    /// The choice's time and energy per item, compared with the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_reference: Option<Savings>,
    /// The savings of the whole run, including exploration, compared with the same items at the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<WholeRunSavings>,
    /// What the choices would save in work that takes a day at the reference, exploration not included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<DailySavings>,
    /// The parts of the run with a constant load, each with its choice.
    pub loads: Vec<Load>,
    /// The measurement windows, in chronological order.
    pub windows: Vec<Window>,
    /// Messages that were shown to the user during the run.
    pub notices: Vec<Notice>,
    /// The time of the run in seconds.
    pub time_s: f64,
    /// The energy of the run in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The number of items that the run processed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<f64>,
    /// Whether every device got back the settings that it had before the run.
    pub restored: bool,
}

/// How a tuning ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TuningStatus {
    /// A setting was chosen.
    Settled,
    /// The run ended before a setting was chosen.
    EndedEarly,
    /// The tuning was given up.
    GaveUp,
}

/// A device that was tuned.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Device {
    /// The UUID of the device.
    pub uuid: String,
    /// The product name of the device.
    pub name: String,
    /// The backend that reads and sets the device.
    pub backend: String,
    /// The settings of this device that all others are compared with.
    pub reference: DeviceSettings,
    /// The settings of this device that were chosen last; absent if none were chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<DeviceSettings>,
    /// The energy of this device in the run, in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
}

/// The settings of a device, or of all devices.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeviceSettings {
    /// The power cap in watts; absent if it is not tuned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap_w: Option<f64>,
    /// The power cap of each processor package in watts; absent if it is not tuned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_power_cap_w: Option<f64>,
    /// The core clock in MHz; absent if it is not tuned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_clock_mhz: Option<f64>,
    /// The settings of each device, in the order of `devices`, if they differ; the other keys are then absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<Vec<DeviceSettings>>,
}

/// A fraction and its uncertainty.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fraction {
    /// The best estimate of the fraction.
    pub value: f64,
    /// The ends of the fraction's 95 % confidence interval.
    pub ci95: [f64; 2],
}

/// The energy saved and the time lost per item, compared with the reference.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Savings {
    /// The energy that is saved, as a fraction of the reference's energy.
    pub energy_saved: Fraction,
    /// The time that is lost, as a fraction of the reference's time.
    pub time_lost: Fraction,
}

/// The savings of a whole run, compared with the same items at the reference.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WholeRunSavings {
    /// The savings as fractions.
    #[serde(flatten)]
    pub savings: Savings,
    /// The energy that is saved, in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_saved_j: Option<f64>,
    /// The time that is lost, in seconds; negative if time is saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_lost_s: Option<f64>,
}

/// What the choices save in work that takes a day at the reference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DailySavings {
    /// The energy that is saved, in joules; negative if more is used.
    pub energy_saved_j: f64,
    /// The additional time, in seconds; negative if the work takes less time.
    pub time_lost_s: f64,
}

/// A part of the run with a constant load, such as a phase.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Load {
    /// The name of the phase; absent if the workload marked none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// When power and progress became steady, in seconds since the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady_since_s: Option<f64>,
    /// When the setting was chosen, in seconds since the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_at_s: Option<f64>,
    /// The settings chosen for this load; absent if none were chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<DeviceSettings>,
    /// The expected loss of the choice against the true best setting, as a fraction of the best value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_regret: Option<f64>,
    /// How much better the objective is at the choice than at the reference, as a fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// What limits the load at the reference, as the mean of all devices; absent if nothing is known about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<LoadLimits>,
    /// The knob that was chosen for this load, `power-cap` or `core-clock`; only with the knob `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knob: Option<&'static str>,
    /// The number of measurement windows until a setting was chosen.
    pub evaluations: usize,
    /// The choice's time and energy per item, compared with the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_reference: Option<Savings>,
    /// The savings over the whole load, including exploration, compared with the same items at the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<Savings>,
    /// The energy that is saved over the whole load, in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_saved_j: Option<f64>,
    /// The extra time and energy of exploration, compared with the same items at the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exploring_cost: Option<TimeAndEnergy>,
    /// The extra time and energy of exploration, compared with the same items at the choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exploring_cost_against_choice: Option<TimeAndEnergy>,
}

/// A measurement window: a part of the run at one setting.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Window {
    /// The purpose of the measurement window.
    pub purpose: Purpose,
    /// The settings during the measurement window.
    pub settings: DeviceSettings,
    /// The start of the measurement window, in seconds since the start of the run.
    pub begin_s: f64,
    /// The end of the measurement window, in seconds since the start of the run.
    pub end_s: f64,
    /// The average power in the measurement window, in watts.
    pub power_w: f64,
    /// The throughput in the measurement window, in items per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_per_s: Option<f64>,
    /// The energy per item in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_per_item_j: Option<f64>,
    /// The noise of time and energy within the measurement window.
    pub noise: Noise,
}

/// The purpose of a measurement window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The window measures the reference setting.
    Reference,
    /// The window measures a setting that the search strategy proposed.
    Explore,
    /// The window checks the chosen setting while it is applied.
    Hold,
}

/// The relative standard deviations within a measurement window.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Noise {
    /// The relative standard deviation of the time per item, as a fraction.
    pub time: f64,
    /// The relative standard deviation of the energy per item, as a fraction.
    pub energy: f64,
}

/// A message that was shown to the user.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Notice {
    /// The time of the message, in seconds since the start of the run.
    pub at_s: f64,
    /// The text of the message.
    pub text: String,
}
