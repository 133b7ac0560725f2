//! A profile that was fitted to a study, `sweetspot.fit/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{Named, SchemaName, Settings, TimeAndEnergy};

/// A GPU and a workload that were fitted to a study. Values are in SI units, with fractions instead of percentages; a
/// key is absent if its value is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fit {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::FIT))]
    pub schema: SchemaName,
    /// The name of the study to which the profile was fitted.
    pub study: String,
    /// The product name of the fitted GPU.
    pub gpu: String,
    /// The name of the fitted workload.
    pub workload: String,
    /// The number of parameters that were fitted.
    pub parameters: usize,
    /// The configurations that the profile was fitted to.
    pub points: Vec<FittedPoint>,
    /// The errors of the fitted profile over all configurations.
    pub errors: FitErrors,
    /// The best configuration for each objective.
    pub best: Named<FittedBest>,
    /// The values that were assumed because neither the study nor a data sheet contains them.
    pub assumed: Vec<String>,
    /// The ranges of settings that the study measured, in words.
    pub tried: String,
    /// Warnings about the data and the fit, for the user.
    pub notes: Vec<String>,
    /// The errors for configurations that a fit did not use (cross-validation); absent if there are too few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<FitErrors>,
}

/// A configuration with its measured and its predicted time and energy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FittedPoint {
    /// The value of each knob in the configuration.
    pub settings: Settings,
    /// The number of items in a run.
    pub items: u64,
    /// The measured time and energy of a run.
    pub measured: TimeAndEnergy,
    /// The time and energy of a run that the fitted profile predicts.
    pub fitted: TimeAndEnergy,
    /// The errors of the prediction, as fractions of the measured values; positive if the prediction is too high.
    pub off: PointError,
}

/// The relative errors of the prediction for one configuration.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PointError {
    /// The error of the predicted time, as a fraction of the measured time.
    pub time: f64,
    /// The error of the predicted energy, as a fraction of the measured energy.
    pub energy: f64,
}

/// The relative errors over several configurations.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FitErrors {
    /// The mean and the largest error of the predicted times.
    pub time: MeanAndWorst,
    /// The mean and the largest error of the predicted energies.
    pub energy: MeanAndWorst,
}

/// The mean and the largest of absolute relative errors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MeanAndWorst {
    /// The mean absolute error over the configurations, as a fraction of the measured value.
    pub mean: f64,
    /// The largest absolute error of any configuration, as a fraction of the measured value.
    pub worst: f64,
}

/// The best configuration for an objective, by the measurements and by the fitted profile.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FittedBest {
    /// The index in `points` of the configuration with the best measured value.
    pub measured: usize,
    /// The index in `points` of the configuration with the best predicted value.
    pub fitted: usize,
    /// The loss from choosing `fitted` instead of `measured`, by the measured values, as a fraction of the best value.
    pub regret: f64,
}
