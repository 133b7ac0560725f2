//! Studies side by side, `sweetspot.compare/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{EnergyOf, Named, RelativeChange, SchemaName, Settings, Status, Summary};

/// Studies side by side, all compared with the first: SI units, fractions instead of percentages; what is absent is
/// unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Compare {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::COMPARE))]
    pub schema: SchemaName,
    /// The objective that was asked for.
    pub objective: Option<String>,
    /// The limits on a choice, as on the command line.
    pub limits: Vec<String>,
    /// Each study.
    pub studies: Vec<ComparedStudy>,
    /// The references, then each setting that the first study and at least one other have.
    pub settings: Vec<CommonSetting>,
    /// The best point of each study, by objective.
    pub best: Named<Vec<BestOfStudy>>,
    /// Differences between the studies that matter for the comparison.
    pub notes: Vec<String>,
}

/// A study that is compared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedStudy {
    /// The name of the study in this comparison.
    pub name: String,
    /// The name of the study.
    pub study: String,
    /// The product name of its first device.
    pub device: String,
    /// The name of its workload.
    pub workload: String,
    /// Whose energy counts.
    pub energy_of: EnergyOf,
    /// The number of its configurations.
    pub points: usize,
}

/// A setting that several studies have.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommonSetting {
    /// The setting in words.
    pub setting: String,
    /// Whether it is the reference of each study.
    pub reference: bool,
    /// The measured values of each study that has the setting.
    pub values: Vec<StudyValues>,
    /// The differences to the first study.
    pub against_first: Vec<StudyDifferences>,
}

/// The measured values of a study at a setting.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StudyValues {
    /// The index into `studies`.
    pub study: usize,
    /// The value of each knob.
    pub settings: Settings,
    /// The state of the configuration.
    pub status: Status,
    /// Each quantity that is compared, by its name with its unit, such as `time_s` or `phase:forward:energy_j`.
    #[serde(flatten)]
    pub quantities: Named<Summary>,
}

/// The differences of a study to the first one at a setting.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StudyDifferences {
    /// The index into `studies`.
    pub study: usize,
    /// Each quantity that is compared, by its name with its unit.
    #[serde(flatten)]
    pub quantities: Named<Difference>,
}

/// The difference of a value to that of the first study.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// The difference as a fraction of the first study's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
    /// The ends of the 95 % confidence interval of that fraction; absent for single runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Whether the difference is significant at the 5 % level; absent for single runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub significant: Option<bool>,
}

/// The best point of a study by an objective.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BestOfStudy {
    /// The index into `studies`.
    pub study: usize,
    /// The index into the points of that study.
    pub point: usize,
    /// The value of each knob.
    pub settings: Settings,
    /// The value of the objective.
    pub value: f64,
    /// The difference to the best of the first study for the same work, as a fraction of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_to_first: Option<f64>,
    /// The change against the study's own reference, as fractions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vs_reference: Option<RelativeChange>,
}
