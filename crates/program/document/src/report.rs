//! The document of `sweetspot report`: a study, `sweetspot.study/1`, with the answer to a question about it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::NumberOrText;
use crate::study::Study;

/// A study with the answer to a question about it: SI units, fractions instead of percentages; what is absent is
/// unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The study.
    #[serde(flatten)]
    pub study: Study,
    /// The answer for the objective and limits that were asked for.
    pub answer: Answer,
    /// The settings along each axis that are better than the reference, by objective.
    pub ranges: Vec<BetterRanges>,
    /// Means along one axis, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Groups>,
}

/// The recommendation and how sure it is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The recommendation in one sentence.
    pub text: String,
    /// Why this is the recommendation, or why there is none.
    pub reason: String,
    /// Warnings about the answer.
    pub notes: Vec<String>,
    /// The choice; absent where nothing can be chosen.
    #[serde(flatten)]
    pub choice: Option<Choice>,
}

/// The chosen point and its neighbours.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Choice {
    /// The index into `points` of the best point.
    pub point: usize,
    /// The value of the objective at the best point.
    pub value: f64,
    /// The ends of the 95 % confidence interval of that value; absent for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// The second-best point; absent where there is no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_up: Option<RunnerUp>,
    /// How much better than the reference the best point is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_reference: Option<Margin>,
    /// The indices of points that are not significantly worse.
    pub tied_with: Vec<usize>,
    /// The points that cannot be chosen.
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
    /// How much better the best point is.
    #[serde(flatten)]
    pub margin: Margin,
    /// The index into `points`.
    pub point: usize,
}

/// A point that cannot be chosen.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExcludedPoint {
    /// The index into `points`.
    pub point: usize,
    /// Why it cannot be chosen.
    pub why: String,
}

/// Where along an axis an objective is better than at the reference; other axes are as at the reference.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BetterRanges {
    /// The axis, by the name that `settings` uses.
    pub axis: String,
    /// The objective.
    pub objective: String,
    /// The ranges in which the means are better, each with its lowest and highest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub better: Option<Vec<[f64; 2]>>,
    /// Why the ranges are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The ranges in which the difference is significant at the 5 % level.
    pub significantly_better: Vec<[f64; 2]>,
}

/// Means of the objective along one axis over others.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Groups {
    /// The axis along which the means are taken.
    pub by: String,
    /// The axes over which the means are taken.
    pub over: Vec<String>,
    /// The kind of mean, such as `geometric`.
    pub mean: String,
    /// The mean at each value of the axis.
    pub values: Vec<GroupMean>,
    /// The index into `values` of the best mean.
    pub best: usize,
    /// What the best saves against the default, as a fraction.
    pub saving: f64,
    /// The number of combinations of the other axes' values that each mean is over.
    pub combinations: usize,
    /// The number of combinations that lack a value somewhere.
    pub left_out: usize,
}

/// The mean at one value of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GroupMean {
    /// The value of the axis.
    pub by: NumberOrText,
    /// The mean of the objective.
    pub mean: f64,
    /// The mean over that of the default.
    pub relative: f64,
}
