//! Search strategies on recorded curves, `sweetspot.replay/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{Named, SchemaName, SearchEnd};

/// Search strategies on recorded curves. The keys of one strategy stand at the top: the guided one, or the only one.
/// Fractions instead of percentages; what is absent is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Replay {
    /// The guided strategy, or the only one.
    #[serde(flatten)]
    pub main: Option<StrategyReplay>,
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::REPLAY))]
    pub schema: SchemaName,
    /// The objective that the strategies search for.
    pub objective: String,
    /// Curves that cannot be searched or judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Each strategy; absent where there is only one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strategies: Vec<StrategyReplay>,
}

/// One strategy on every curve.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StrategyReplay {
    /// The name of the strategy.
    pub strategy: String,
    /// Each curve.
    pub curves: Vec<Curve>,
    /// The results over all curves.
    pub summary: ReplaySummary,
}

/// The results of a strategy over all curves.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReplaySummary {
    /// The median number of evaluations.
    pub evaluations_median: f64,
    /// The largest number of evaluations.
    pub evaluations_most: usize,
    /// The number of curves that have an optimum within the limits.
    pub curves_judged: usize,
    /// The share of these curves on which the regret is at most 1 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_1pct: Option<f64>,
    /// The share of these curves on which the regret is at most 2 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_2pct: Option<f64>,
    /// The mean regret, as a fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regret_mean: Option<f64>,
    /// The mean share of the possible gain that the choice gains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_share_mean: Option<f64>,
    /// The mean regret after 1, 2, 3 and more evaluations, had the strategy not stopped.
    pub regret_by_evaluations: Vec<f64>,
}

/// A strategy on one curve.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Curve {
    /// The columns and values that name the curve.
    pub group: Named<String>,
    /// The number of recorded points.
    pub points: usize,
    /// The number of evaluations, the reference included.
    pub evaluations: usize,
    /// Why the search ended.
    pub ended: SearchEnd,
    /// The chosen value of each knob.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Named<f64>>,
    /// The best recorded value of each knob within the limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimum: Option<Named<f64>>,
    /// How much worse the choice is than the optimum, as a fraction of the optimum's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regret: Option<f64>,
    /// The share of the possible gain over the reference that the choice gains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_share: Option<f64>,
}
