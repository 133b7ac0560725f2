//! The best settings of a study, the recommended one, and the result of a search; part of `sweetspot.study/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{SearchEnd, Settings};

/// The best point for an objective.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BestPoint {
    /// The index of the best point in `points`.
    pub point: usize,
    /// The indices in `points` of points that are not significantly worse than the best one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tied_with: Vec<usize>,
}

/// The recommended setting of a study.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Recommendation {
    /// The objective for which the setting is recommended.
    pub objective: String,
    /// Whether a setting other than the reference is recommended.
    pub change: bool,
    /// The index of the recommended point in `points`: that of the reference if nothing is to be changed; absent if the
    /// reference is recommended and is not one of the points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<usize>,
    /// The indices in `points` of all points that may be the best; with 95 % probability the truly best of the points that
    /// ran are among them. A search runs only some of the points: its `search.regret_bound` counts the others too.
    pub may_be_best: Vec<usize>,
    /// What the change saves compared with the reference; absent if nothing is to be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saving: Option<Saving>,
    /// The probability that the change gains nothing; absent if nothing is to be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance_of_no_gain: Option<f64>,
    /// The probability that no point is better than the reference by more than 0.5 % of the objective, so that changing
    /// anything gains nothing; absent if the reference does not meet the limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance_nothing_gains: Option<f64>,
    /// The expected loss against the truly best point, as a share of the objective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_loss: Option<f64>,
    /// Why this setting is recommended.
    pub reason: String,
}

/// The relative changes of energy and time from the reference to the recommended point: -0.26 means 26 % less.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Saving {
    /// The relative change of energy; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<f64>,
    /// The relative change of time; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// The 95 % intervals of the changes.
    pub ci95: SavingIntervals,
}

/// The 95 % intervals of the relative changes of energy and time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SavingIntervals {
    /// The lower and upper end of the interval of the energy; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<[f64; 2]>,
    /// The lower and upper end of the interval of the time; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<[f64; 2]>,
}

/// The result of a search strategy, with the objective and the limits of the search.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Search {
    /// The name of the strategy.
    pub strategy: String,
    /// The objective of the search.
    pub objective: String,
    /// The limits of the search, as on the command line.
    pub limits: Vec<String>,
    /// The number of runs, including those of the reference.
    pub evaluations: usize,
    /// The names of the earlier studies that the search learns from.
    pub learns_from: Vec<String>,
    /// Why the search ended; absent if it has not ended yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<SearchEnd>,
    /// The index in `points` of the configuration that the search chose; absent if it chose none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<usize>,
    /// The settings that the search chose; absent if it chose none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Settings>,
    /// The expected loss of the choice against the true best setting, as a fraction of the best value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_regret: Option<f64>,
    /// The bound that the loss of the choice against the true best setting does not exceed in 90 % of all searches, as a
    /// fraction of the best value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regret_bound: Option<f64>,
}
