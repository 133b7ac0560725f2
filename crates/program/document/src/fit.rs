//! A profile that was fitted to a study, `sweetspot.fit/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{Named, SchemaName, Settings, TimeAndEnergy};

/// A GPU and a workload that were fitted to a study: SI units, fractions instead of percentages; what is absent is
/// unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fit {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::FIT))]
    pub schema: SchemaName,
    /// The name of the study.
    pub study: String,
    /// The product name of the fitted GPU.
    pub gpu: String,
    /// The name of the fitted workload.
    pub workload: String,
    /// The number of parameters that were fitted.
    pub parameters: usize,
    /// Each configuration of the study.
    pub points: Vec<FittedPoint>,
    /// The errors over all configurations.
    pub errors: FitErrors,
    /// The best configuration by each objective.
    pub best: Named<FittedBest>,
    /// What neither the study nor a data sheet tells, and was assumed.
    pub assumed: Vec<String>,
    /// The settings that the study tried, in words.
    pub tried: String,
    /// Notes on the fit.
    pub notes: Vec<String>,
    /// The errors of configurations that were left out of the fit; absent where there are too few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<FitErrors>,
}

/// A configuration, measured and as the fitted profile predicts it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FittedPoint {
    /// The value of each knob.
    pub settings: Settings,
    /// The number of items in a run.
    pub items: u64,
    /// The measured time and energy of a run.
    pub measured: TimeAndEnergy,
    /// The time and energy of a run by the fitted profile.
    pub fitted: TimeAndEnergy,
    /// The errors of the fitted profile, as fractions of what was measured.
    pub off: PointError,
}

/// The relative errors of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PointError {
    /// The error of the time, as a fraction.
    pub time: f64,
    /// The error of the energy, as a fraction.
    pub energy: f64,
}

/// The relative errors over several configurations.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FitErrors {
    /// The errors of the times.
    pub time: MeanAndWorst,
    /// The errors of the energies.
    pub energy: MeanAndWorst,
}

/// The mean and the largest of absolute relative errors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MeanAndWorst {
    /// The mean, as a fraction.
    pub mean: f64,
    /// The largest, as a fraction.
    pub worst: f64,
}

/// The best configuration by an objective, measured and by the fitted profile.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FittedBest {
    /// The index into `points` of the best as measured.
    pub measured: usize,
    /// The index into `points` of the best by the fitted profile.
    pub fitted: usize,
    /// How much worse than the measured best the fitted best was measured, as a fraction.
    pub regret: f64,
}
