//! A training run that was tuned while it ran, `sweetspot.tune/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{SchemaName, TimeAndEnergy};

/// A training run that was tuned while it ran: SI units, fractions instead of percentages; what is absent is unknown.
/// Times are since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Tuning {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::TUNE))]
    pub schema: SchemaName,
    /// The workload.
    pub workload: String,
    /// The devices that were tuned.
    pub devices: Vec<Device>,
    /// The knob that was tuned.
    pub knob: String,
    /// The objective.
    pub objective: String,
    /// The limits on a choice, as on the command line.
    pub limits: Vec<String>,
    /// The search strategy.
    pub strategy: String,
    /// How the tuning ended.
    pub status: TuningStatus,
    /// Why the tuning was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the tuning was given up, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gave_up_at_s: Option<f64>,
    /// Whether no setting kept within the limits; absent where one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside_limits: Option<bool>,
    /// The settings that all others are compared with.
    pub reference: DeviceSettings,
    /// The settings that were chosen last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<DeviceSettings>,
    /// How much worse than the best the choice is expected to be, as a fraction of the best value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_regret: Option<f64>,
    /// The choice against the reference, item for item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_reference: Option<Savings>,
    /// The whole run against the reference, exploring included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<WholeRunSavings>,
    /// Each load of the run.
    pub loads: Vec<Load>,
    /// Each measured window.
    pub windows: Vec<Window>,
    /// Messages to the user.
    pub notices: Vec<Notice>,
    /// The time of the run in seconds.
    pub time_s: f64,
    /// The energy of the run in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The number of items that were done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<f64>,
    /// Whether every device was restored to its settings before the run.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Device {
    /// The UUID.
    pub uuid: String,
    /// The product name.
    pub name: String,
    /// The backend that reads and sets the device.
    pub backend: String,
}

/// The settings of a device.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeviceSettings {
    /// The power cap in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap_w: Option<f64>,
    /// The core clock in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_clock_mhz: Option<f64>,
}

/// A fraction and its uncertainty.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fraction {
    /// The best estimate.
    pub value: f64,
    /// The ends of the 95 % confidence interval.
    pub ci95: [f64; 2],
}

/// What is saved against the reference, item for item.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Savings {
    /// The energy that is saved, as a fraction of the reference's.
    pub energy_saved: Fraction,
    /// The time that is lost, as a fraction of the reference's.
    pub time_lost: Fraction,
}

/// What a whole run saves against the reference.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WholeRunSavings {
    /// The savings as fractions.
    #[serde(flatten)]
    pub savings: Savings,
    /// The energy that is saved, in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_saved_j: Option<f64>,
}

/// A part of the run with the same load, such as a phase.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Load {
    /// The phase that the workload marked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// When power and progress became steady, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady_since_s: Option<f64>,
    /// When the choice was made, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_at_s: Option<f64>,
    /// The chosen settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<DeviceSettings>,
    /// How much worse than the best the choice is expected to be, as a fraction of the best value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_regret: Option<f64>,
    /// How much better than the reference the choice is by the objective, as a fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// The number of measured windows until the choice.
    pub evaluations: usize,
    /// The choice against the reference, item for item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_reference: Option<Savings>,
    /// The whole load against the reference, exploring included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<Savings>,
    /// The energy that is saved, in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_saved_j: Option<f64>,
    /// What exploring cost beyond the same items at the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exploring_cost: Option<TimeAndEnergy>,
    /// What exploring cost beyond the same items at the choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exploring_cost_against_choice: Option<TimeAndEnergy>,
}

/// A measured window.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Window {
    /// What the window was measured for.
    pub purpose: Purpose,
    /// The settings of the window.
    pub settings: DeviceSettings,
    /// The begin of the window in seconds.
    pub begin_s: f64,
    /// The end of the window in seconds.
    pub end_s: f64,
    /// The average power in watts.
    pub power_w: f64,
    /// The throughput in items per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_per_s: Option<f64>,
    /// The energy of an item in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_per_item_j: Option<f64>,
    /// The noise of the window.
    pub noise: Noise,
}

/// What a window was measured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The reference.
    Reference,
    /// A setting that the strategy asked for.
    Explore,
    /// The chosen setting.
    Hold,
}

/// The relative standard deviations of a window.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Noise {
    /// The noise of the time of an item, as a fraction.
    pub time: f64,
    /// The noise of the energy of an item, as a fraction.
    pub energy: f64,
}

/// A message to the user.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Notice {
    /// When, in seconds.
    pub at_s: f64,
    /// The message.
    pub text: String,
}
