//! A calibration of a sensor, `sweetspot.calibrate/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::SchemaName;

/// A sensor that was compared with a meter. Values are in SI units, with fractions instead of percentages.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Calibrate {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::CALIBRATE))]
    pub schema: SchemaName,
    /// The calibration.
    pub calibration: Calibration,
    /// The UUID of the calibrated GPU, or the identities of all parts of the host.
    pub devices: Vec<String>,
    /// The name of the device.
    pub device: String,
    /// The meter's power where the sensor shows none, in watts; with `machine` mostly that of the rest of the machine.
    pub offset_w: f64,
    /// The 95 % confidence interval of the offset, in watts.
    pub offset_interval95_w: [f64; 2],
    /// The root mean square of what the line does not explain, in watts.
    pub residual_w: f64,
    /// The largest mean of what the line does not explain in a third of the range, in watts.
    pub bend_w: f64,
    /// The number of the meter's values.
    pub values: usize,
    /// How long sensor and meter were compared, in seconds.
    pub time_s: f64,
    /// The meter's delay, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<f64>,
    /// The file in which the calibration is stored; absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Warnings about the calibration.
    pub warnings: Vec<String>,
}

/// A calibration that is applied to the energy of a device.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Calibration {
    /// Its name.
    pub name: String,
    /// When it was made, in UTC.
    pub date: String,
    /// The meter, as the user named it.
    pub meter: String,
    /// What the meter measured: `machine` (then the energy is that at the wall) or `device`.
    pub meter_measures: String,
    /// The meter's watts for a watt of the sensor.
    pub gain: f64,
    /// The 95 % confidence interval of the gain, with the meter's accuracy.
    pub gain_interval95: [f64; 2],
    /// The watts that are added to the device's power; absent where the offset is the rest of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_w: Option<f64>,
    /// The range of the sensor's power in which the calibration was made, in watts.
    pub range_w: [f64; 2],
}
