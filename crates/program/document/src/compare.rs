//! Studies side by side, `sweetspot.compare/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{EnergyOf, Named, RelativeChange, SchemaName, Settings, Status, Summary};

/// Several studies, compared with the first one. Values are in SI units, with fractions instead of percentages; a key
/// is absent if its value is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Compare {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::COMPARE))]
    pub schema: SchemaName,
    /// The objective that the user requested; absent if none.
    pub objective: Option<String>,
    /// The limits that a best point must meet, as on the command line.
    pub limits: Vec<String>,
    /// The studies, all of which are compared with the first one.
    pub studies: Vec<ComparedStudy>,
    /// The reference of each study, then each setting that the first study and at least one other study contain.
    pub settings: Vec<CommonSetting>,
    /// The best point of each study, for each objective.
    pub best: Named<Vec<BestOfStudy>>,
    /// Differences between the studies that matter for the comparison.
    pub notes: Vec<String>,
}

/// A study in a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedStudy {
    /// The label of the study in this comparison: the name of its folder, or its path.
    pub name: String,
    /// The name that the study itself stores.
    pub study: String,
    /// The product name of the study's first device.
    pub device: String,
    /// The name of the study's workload.
    pub workload: String,
    /// The devices whose energy the results contain.
    pub energy_of: EnergyOf,
    /// The number of the study's configurations.
    pub points: usize,
    /// Whether to change the settings and to which point, as in the study's own document; absent if no point can be
    /// chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<crate::study::Recommendation>,
}

/// A setting that several studies measured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommonSetting {
    /// The setting in words.
    pub setting: String,
    /// Whether this setting is the reference of each study.
    pub reference: bool,
    /// The measured values of each study that has the setting.
    pub values: Vec<StudyValues>,
    /// The differences of each other study from the first study.
    pub against_first: Vec<StudyDifferences>,
}

/// The measured values of a study at a setting.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StudyValues {
    /// The index of the study in `studies`.
    pub study: usize,
    /// The value of each knob at this setting.
    pub settings: Settings,
    /// The state of the configuration.
    pub status: Status,
    /// Each quantity that is compared, by its name with its unit, such as `time_s` or `phase:forward:energy_j`.
    #[serde(flatten)]
    pub quantities: Named<Summary>,
}

/// The differences of a study from the first study at one setting.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StudyDifferences {
    /// The index of the study in `studies`.
    pub study: usize,
    /// Each quantity that is compared, by its name with its unit.
    #[serde(flatten)]
    pub quantities: Named<Difference>,
}

/// The difference between a study's value and the first study's value.
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

/// The best point of a study for an objective.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BestOfStudy {
    /// The index of the study in `studies`.
    pub study: usize,
    /// The index of the point among the points of that study.
    pub point: usize,
    /// The value of each knob at this setting.
    pub settings: Settings,
    /// The value of the objective at this point, in the objective's unit.
    pub value: f64,
    /// The difference of `value` from the first study's best value for the same work, as a fraction of the latter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_to_first: Option<f64>,
    /// The change against the study's own reference, as fractions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vs_reference: Option<RelativeChange>,
}
