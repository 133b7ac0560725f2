//! Which configuration to evaluate next: strategies that are asked, and told what came out.
//!
//! A strategy knows places by their number in a [`Space`]. It evaluates the reference first, and keeps it:
//! a reference that is measured again at the tuned setting ratchets downwards.
//!
//! ```
//! use sweetspot_decide::{Objective, Outcome};
//! use sweetspot_decide::search::{Ask, Knob, Space, StrategyName, Terms, Told};
//! use sweetspot_quantity::{Joules, Seconds};
//!
//! let caps = [100.0, 150.0, 200.0, 250.0];
//! let space = Space::along(Knob::PowerCap, &caps)?;
//! let mut strategy = StrategyName::Exhaustive.start(space, &Objective::Edp.into(), Terms::default());
//! while let Ask::Evaluate(place) = strategy.ask() {
//!     let time = 10.0 + 500.0 / caps[place];
//!     let energy = time * caps[place];
//!     strategy.tell(place, Told::measured(Outcome::new(Seconds::new(time), Joules::new(energy))));
//! }
//! let answer = strategy.answer().expect("four places were evaluated");
//! assert_eq!(caps[answer.place], 100.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod by_line;
mod exhaustive;
mod golden;
mod guided;
mod ledger;
mod linear;
mod name;
mod space;

pub use guided::Prior;
pub use name::{StrategyName, StrategyNameError};
pub use space::{Knob, Space, SpaceError};

use crate::Outcome;

/// Decides what to evaluate next.
pub trait Strategy {
    /// The next place, or why there is none. Asked again before it is told anything, it says the same.
    fn ask(&mut self) -> Ask;
    /// What an evaluation came to; also one that was not asked for.
    fn tell(&mut self, place: usize, told: Told);
    /// The best place by what is known so far.
    fn answer(&mut self) -> Option<Answer>;
}

/// What a strategy wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// This place, once.
    Evaluate(usize),
    /// Nothing more.
    Done(Done),
}

/// Why a search is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It has evaluated all that it does.
    Complete,
    /// What more could be gained is less than is worth an evaluation.
    Sure,
    /// It may not evaluate more.
    Spent,
    /// The reference failed, and without it nothing can be judged.
    ReferenceFailed,
}

/// What an evaluation came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// It ended well.
    Measured {
        /// What it came to.
        outcome: Box<Outcome>,
        /// How far a repeat would differ, where that is known.
        noise: Option<Noise>,
    },
    /// It did not, and will not: the place is out.
    Failed,
    /// The place is out for what is known of others; nothing was evaluated.
    Impossible,
}

impl Told {
    /// An evaluation whose noise is the usual one.
    pub fn measured(outcome: Outcome) -> Self {
        Self::Measured {
            outcome: Box::new(outcome),
            noise: None,
        }
    }
}

/// Standard deviation of one evaluation, as a fraction of its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Of time.
    pub time: f64,
    /// Of energy.
    pub energy: f64,
}

impl Noise {
    /// None: a repeat gives the same.
    pub const NONE: Self = Self::equal(0.0);

    /// The same for time and energy.
    pub const fn equal(noise: f64) -> Self {
        Self {
            time: noise,
            energy: noise,
        }
    }
}

/// What a strategy says is best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Which place.
    pub place: usize,
    /// By how much it is expected to be worse than the true best, as a fraction of that; only a strategy
    /// with a model knows.
    pub expected_regret: Option<f64>,
}

/// How a search is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// How often each place is evaluated, by the strategies that are not guided by a model.
    pub repeats: usize,
    /// Of `linear`, in the unit of the knob.
    pub step: Option<f64>,
    /// No more evaluations than this, the reference included.
    pub most: usize,
    /// Of an evaluation that is not told with its own.
    pub noise: Noise,
    /// Whether evaluations are looked up in a record: a repeat gives the same, and its noise is a part of what
    /// is searched.
    pub recorded: bool,
    /// Of random draws.
    pub seed: u64,
    /// Expected regret that is not worth another evaluation.
    pub enough: f64,
    /// What earlier studies of the same GPU or network teach.
    pub prior: Prior,
}

/// What an earlier search of the same knobs found.
#[derive(Clone, Debug, PartialEq)]
pub struct Earlier {
    /// A coordinate for each knob.
    pub places: Vec<Vec<f64>>,
    /// At each place.
    pub outcomes: Vec<Outcome>,
    /// The place that the others are compared with.
    pub reference: usize,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            repeats: 1,
            step: None,
            most: usize::MAX,
            noise: Noise::equal(0.01),
            recorded: false,
            seed: 0,
            enough: 0.004,
            prior: Prior::default(),
        }
    }
}
