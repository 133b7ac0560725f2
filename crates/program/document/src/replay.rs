//! Search strategies on recorded curves, `sweetspot.replay/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{Named, SchemaName, SearchEnd};

/// Search strategies, replayed on recorded measurements. The top level also has the keys of one strategy: the guided
/// one, or the only one. Values have fractions instead of percentages; a key is absent if its value is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Replay {
    /// The results of the guided strategy, or of the only strategy.
    #[serde(flatten)]
    pub main: Option<StrategyReplay>,
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::REPLAY))]
    pub schema: SchemaName,
    /// The objective that the strategies optimise.
    pub objective: String,
    /// Warnings about curves that no strategy can search or that have no optimum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The results of each strategy; absent if there is only one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strategies: Vec<StrategyReplay>,
}

/// The results of one strategy on all curves.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StrategyReplay {
    /// The name of the strategy.
    pub strategy: String,
    /// The result of the strategy on each curve.
    pub curves: Vec<Curve>,
    /// The summary over all curves.
    pub summary: ReplaySummary,
}

/// The results of a strategy over all curves.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReplaySummary {
    /// The median over the curves of the number of evaluations.
    pub evaluations_median: f64,
    /// The largest number of evaluations on any curve.
    pub evaluations_most: usize,
    /// The number of curves that have an optimum, because at least one point meets the limits.
    pub curves_judged: usize,
    /// The share of the `curves_judged` curves on which the regret is at most 1 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_1pct: Option<f64>,
    /// The share of the `curves_judged` curves on which the regret is at most 2 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_2pct: Option<f64>,
    /// The mean of `regret` over the `curves_judged` curves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regret_mean: Option<f64>,
    /// The mean of `gain_share` over the curves for which it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_share_mean: Option<f64>,
    /// The share of the stated bounds (`regret_bound`) that hold; absent if the strategy states none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds_held: Option<f64>,
    /// The median over the curves of `regret_bound`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regret_bound_median: Option<f64>,
    /// The mean regret after 1, 2, 3 and more evaluations, when the strategy continues after it would have stopped.
    pub regret_by_evaluations: Vec<f64>,
    /// The share of the `curves_judged` curves on which the regret is at most 1 % after 1, 2, 3 and more evaluations if
    /// the strategy does not stop early.
    pub within_1pct_by_evaluations: Vec<f64>,
    /// The share of the bounds that hold of those stated after 1, 2, 3 and more evaluations if the strategy does not stop
    /// early; null where it states none. Absent if it never states one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounds_held_by_evaluations: Vec<Option<f64>>,
}

/// The result of one strategy on one curve.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Curve {
    /// The names and values of the columns that identify the curve.
    pub group: Named<String>,
    /// The number of recorded points of the curve.
    pub points: usize,
    /// The number of evaluations, including the reference.
    pub evaluations: usize,
    /// Why the search ended.
    pub ended: SearchEnd,
    /// The chosen value of each knob; absent if no evaluated point meets the limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Named<f64>>,
    /// The value of each knob at the best recorded point that meets the limits; absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimum: Option<Named<f64>>,
    /// How much worse the choice is than the optimum, as a fraction of the optimum's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regret: Option<f64>,
    /// The bound that the strategy states: the regret is at most this fraction in 90 % of all searches. Absent if the
    /// strategy states none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regret_bound: Option<f64>,
    /// The choice's gain over the reference as a fraction of the optimum's gain over the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_share: Option<f64>,
}
