//! The document of `sweetspot report`: a study, `sweetspot.study/1`, with a recommendation for an objective and limits.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::NumberOrText;
use crate::study::Study;

/// A study with a recommendation for an objective and limits. Values are in SI units, with fractions instead of
/// percentages; a key is absent if its value is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The study and its results.
    #[serde(flatten)]
    pub study: Study,
    /// The recommendation for the requested objective and limits.
    pub answer: Answer,
    /// For each axis and objective, the ranges of values that are better than the reference.
    pub ranges: Vec<BetterRanges>,
    /// Means of the objective along one axis; absent if the user did not request them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Groups>,
}

/// The recommendation, its reason and its uncertainty.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The recommendation in one sentence.
    pub text: String,
    /// Why this is the recommendation, or why there is none.
    pub reason: String,
    /// Warnings about the recommendation.
    pub notes: Vec<String>,
    /// The best point and how it compares; absent if no point can be chosen.
    #[serde(flatten)]
    pub choice: Option<Choice>,
}

/// The best point, compared with the second-best point and the reference.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Choice {
    /// The index of the best point in `points`.
    pub point: usize,
    /// The value of the objective at the best point.
    pub value: f64,
    /// The ends of the 95 % confidence interval of that value; absent for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// The second-best point; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_up: Option<RunnerUp>,
    /// How much better the best point is than the reference; absent if the reference has no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_reference: Option<Margin>,
    /// The indices in `points` of points that are not significantly worse than the best one.
    pub tied_with: Vec<usize>,
    /// The points that cannot be chosen, for example because they failed or break a limit.
    pub excluded: Vec<ExcludedPoint>,
}

/// How much better one value of the objective is than another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Margin {
    /// The difference in the unit of the objective; positive is better.
    pub better_by: f64,
    /// The difference as a fraction of the other value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
    /// The ends of the 95 % confidence interval of the difference; absent for single runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Whether the difference is significant at the 5 % level; absent for single runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub significant: Option<bool>,
}

/// The second-best point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunnerUp {
    /// How much better the best point is than this one.
    #[serde(flatten)]
    pub margin: Margin,
    /// The index of the second-best point in `points`.
    pub point: usize,
}

/// A point that cannot be chosen.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExcludedPoint {
    /// The index of the point in `points`.
    pub point: usize,
    /// Why the point cannot be chosen, in words.
    pub why: String,
}

/// The values of an axis at which an objective is better than at the reference, with other axes at the reference.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BetterRanges {
    /// The axis, by its key in `settings`.
    pub axis: String,
    /// The name of the objective that is compared.
    pub objective: String,
    /// The ranges of the axis in which the mean is better, each as its lowest and highest value; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub better: Option<Vec<[f64; 2]>>,
    /// Why the ranges are unknown; absent if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The ranges of the axis in which the objective is better, significant at the 5 % level.
    pub significantly_better: Vec<[f64; 2]>,
}

/// Means of the objective for each value of one axis, taken over other axes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Groups {
    /// The name of the axis for each of whose values there is a mean.
    pub by: String,
    /// The names of the axes over which the means are taken.
    pub over: Vec<String>,
    /// The kind of mean, such as `geometric`.
    pub mean: String,
    /// The mean at each value of the axis.
    pub values: Vec<GroupMean>,
    /// The index of the best mean in `values`.
    pub best: usize,
    /// How much better the best mean is than the mean at the default value of the axis, as a fraction.
    pub saving: f64,
    /// The number of combinations of values of the `over` axes in each mean.
    pub combinations: usize,
    /// The number of combinations that are left out because some value of the `by` axis has no result for them.
    pub left_out: usize,
}

/// The mean at one value of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GroupMean {
    /// The value of the axis.
    pub by: NumberOrText,
    /// The mean of the objective.
    pub mean: f64,
    /// The mean divided by the mean at the default value of the axis.
    pub relative: f64,
}
