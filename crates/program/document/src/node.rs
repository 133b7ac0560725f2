//! The energy of a host and of a whole machine, as part of other documents.

use schemars::JsonSchema;
use serde::Serialize;

use crate::measure::{DeviceEnergy, TotalEnergy};

/// The energy of the processors and their memory in the measurement window.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HostEnergy {
    /// The energy of all parts; absent if that of a part is unknown.
    #[serde(flatten)]
    pub energy: Option<TotalEnergy>,
    /// The energy of each processor package and of the memory beside it.
    pub parts: Vec<DeviceEnergy>,
}

/// The energy of the whole machine in the measurement window, from power meters.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NodeEnergy {
    /// The energy of all meters together; absent if it is unknown.
    #[serde(flatten)]
    pub energy: Option<TotalEnergy>,
    /// The average power in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_power_w: Option<f64>,
    /// How the energy was computed from the readings of the meters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The share of the measured GPUs in the energy, as a fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_share: Option<f64>,
    /// The energy of each meter.
    pub meters: Vec<MeterEnergy>,
    /// Why the energy is unknown; absent if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The energy that one meter measured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MeterEnergy {
    /// The name of the meter, or what it is, as the user wrote it.
    pub name: String,
    /// The model of the meter, or which part of the machine it measures, such as a chassis of its controller.
    pub model: String,
    /// The energy in the part of the window that the readings cover; its interval allows for the meter's accuracy, delay
    /// and averaging.
    #[serde(flatten)]
    pub energy: TotalEnergy,
    /// How the energy was computed: `meter samples` or `meter counter`.
    pub method: String,
    /// The meter's delay in seconds, where the GPUs' power showed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<f64>,
    /// The standard deviation of the delay in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_sd_s: Option<f64>,
    /// The meter's averaging time in seconds, where the GPUs' power showed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaging_s: Option<f64>,
    /// The part of the measurement window that the readings cover, in seconds.
    pub covered_s: f64,
    /// The energy by the other method; absent if the meter offers one only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<MeterCheck>,
}

/// The energy of a meter by another method.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MeterCheck {
    /// The energy by this method.
    #[serde(flatten)]
    pub energy: TotalEnergy,
    /// The name of this method.
    pub method: String,
    /// The difference from the energy of the meter, as a fraction of the latter.
    pub difference: f64,
}
