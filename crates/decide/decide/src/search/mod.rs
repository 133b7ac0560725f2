//! Search strategies: each proposes the configuration to evaluate next, and the caller passes back its result.
//!
//! A strategy identifies a configuration by the index of its point in a [`SearchSpace`]. It evaluates the reference
//! first and never replaces it: if each search took the last recommendation as its reference, the settings would
//! fall further with every search.
//!
//! ```
//! use sweetspot_decide::{Objective, Outcome};
//! use sweetspot_decide::search::{
//!     Evaluation, KnobKind, Proposal, SearchOptions, SearchSpace, StrategyName,
//! };
//! use sweetspot_quantity::{Joules, Seconds};
//!
//! let caps = [100.0, 150.0, 200.0, 250.0];
//! let space = SearchSpace::of_one_knob(KnobKind::PowerCap, &caps)?;
//! let options = SearchOptions::default();
//! let mut strategy = StrategyName::Exhaustive.start(space, &Objective::Edp.into(), options);
//! while let Proposal::Evaluate(point) = strategy.ask() {
//!     let time = Seconds::new(10.0 + 500.0 / caps[point]);
//!     let energy = Joules::new(time.get() * caps[point]);
//!     strategy.tell(point, Evaluation::measured(Outcome::new(time, energy)));
//! }
//! let recommendation = strategy.recommend().expect("four points were evaluated");
//! assert_eq!(caps[recommendation.point], 100.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod coordinate;
mod evaluation_log;
mod exhaustive;
mod golden;
mod guided;
mod linear;
mod space;
mod strategy_name;

pub use guided::Prior;
pub use space::{KnobKind, SearchSpace, SearchSpaceError};
pub use strategy_name::{StrategyName, StrategyNameError};

use crate::Outcome;

/// A search that decides which point to evaluate next.
pub trait Strategy {
    /// Returns the next point to evaluate, or why the search is over. The proposal stays the same until
    /// [`Self::tell`] is called.
    fn ask(&mut self) -> Proposal;
    /// Records the result of an evaluation, also of a point that was not proposed.
    fn tell(&mut self, point: usize, evaluation: Evaluation);
    /// Returns the best point according to the evaluations so far; `None` if no point can be recommended yet.
    fn recommend(&mut self) -> Option<Recommendation>;
}

/// What a strategy proposes to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// Evaluate this point once.
    Evaluate(usize),
    /// Stop the search, for this reason.
    Stop(StopReason),
}

/// Why a search is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The strategy has evaluated every point that it needs.
    Complete,
    /// The expected gain of another evaluation is not worth its cost.
    Converged,
    /// The maximum number of evaluations is reached.
    BudgetSpent,
    /// The reference failed, and other points are compared with it.
    ReferenceFailed,
}

/// The result of evaluating a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Evaluation {
    /// The run at the point succeeded.
    Measured {
        /// The time, the energy and the other values of the run.
        outcome: Box<Outcome>,
        /// The noise of the run, if it is known.
        noise: Option<Noise>,
    },
    /// The run failed and a repeat would fail too, so the point is excluded.
    Failed,
    /// The point is excluded without a run, because the result of another point shows that it cannot work.
    Impossible,
}

impl Evaluation {
    /// A successful run whose noise is assumed to be [`SearchOptions::noise`].
    pub fn measured(outcome: Outcome) -> Self {
        Self::Measured {
            outcome: Box::new(outcome),
            noise: None,
        }
    }
}

/// The standard deviations of the results of one evaluation, each as a fraction of the value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// The standard deviation of the time, as a fraction.
    pub time: f64,
    /// The standard deviation of the energy, as a fraction.
    pub energy: f64,
}

impl Noise {
    /// No noise: a repeat gives the same result.
    pub const NONE: Self = Self::equal(0.0);

    /// Creates the same noise for time and energy, as a fraction.
    pub const fn equal(noise: f64) -> Self {
        Self {
            time: noise,
            energy: noise,
        }
    }
}

/// The point that a strategy considers best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recommendation {
    /// The index of the recommended point in the search space.
    pub point: usize,
    /// By how much the recommended point is expected to be worse than the true best point, as a fraction; absent if the
    /// strategy has no model.
    pub expected_regret: Option<f64>,
    /// The bound that the true regret does not exceed with a probability of 90 %, as a fraction like
    /// [`Self::expected_regret`].
    pub regret_bound: Option<f64>,
}

/// The options of a search strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOptions {
    /// The number of times that a strategy without a model evaluates each point.
    pub repeats: usize,
    /// The step of the `linear` strategy, in the unit of the knob; absent for the default step.
    pub step: Option<f64>,
    /// The maximum number of evaluations, the reference included.
    pub max_evaluations: usize,
    /// The noise that is assumed for an evaluation whose own noise is unknown.
    pub noise: Noise,
    /// Whether evaluations are looked up in recorded results. A repeat then gives the same value, and the search is
    /// for the best recorded value, noise included.
    pub is_replay: bool,
    /// The seed of the strategy's random numbers.
    pub seed: u64,
    /// The expected regret below which a search with a model stops, because another evaluation is not worth its
    /// cost.
    pub acceptable_regret: f64,
    /// The share of the job's time that an evaluation takes at the reference, the change of the setting and its settling
    /// included, if the job itself runs meanwhile; 0 if evaluations are not a part of the job. A search with a model then
    /// weighs what an evaluation may gain against what the job loses meanwhile at a poor point.
    pub share_of_job: f64,
    /// What earlier studies of the same GPU or network found.
    pub prior: Prior,
}

/// Results of an earlier search over the same knobs.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierResults {
    /// The points that were evaluated: the value of each knob, in the order of the knobs.
    pub points: Vec<Vec<f64>>,
    /// The outcome at each point, in the order of `points`.
    pub outcomes: Vec<Outcome>,
    /// The index of the point that the others are compared with.
    pub reference: usize,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            repeats: 1,
            step: None,
            max_evaluations: usize::MAX,
            noise: Noise::equal(0.01),
            is_replay: false,
            seed: 0,
            acceptable_regret: 0.004,
            share_of_job: 0.0,
            prior: Prior::default(),
        }
    }
}
