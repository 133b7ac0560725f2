//! The names of the strategies.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use super::coordinate::CoordinateSearch;
use super::exhaustive::Exhaustive;
use super::golden::Golden;
use super::guided::Guided;
use super::linear::Linear;
use super::{SearchOptions, SearchSpace, Strategy};
use crate::Criteria;

/// A search strategy, identified by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategyName {
    /// Evaluates every point.
    Exhaustive,
    /// Steps down from the highest value of a knob in equal steps, as Zeus does.
    Linear,
    /// Golden-section search along each knob, as in DEPO.
    Golden,
    /// Chooses each evaluation by a model that predicts the GPU's time and energy.
    Guided,
}

impl StrategyName {
    /// All strategies, the simplest first.
    pub const ALL: [Self; 4] = [Self::Exhaustive, Self::Linear, Self::Golden, Self::Guided];

    /// Starts a search by this strategy.
    pub fn start(
        self,
        space: SearchSpace,
        criteria: &Criteria,
        options: SearchOptions,
    ) -> Box<dyn Strategy> {
        match self {
            Self::Exhaustive => Box::new(Exhaustive::new(space, criteria, options)),
            Self::Linear => {
                let line_search = Linear::new(&options);
                Box::new(CoordinateSearch::new(
                    space,
                    criteria,
                    &options,
                    line_search,
                ))
            }
            Self::Golden => {
                let line_search = Golden::new(&options);
                Box::new(CoordinateSearch::new(
                    space,
                    criteria,
                    &options,
                    line_search,
                ))
            }
            Self::Guided => Box::new(Guided::new(space, criteria, options)),
        }
    }

    /// The name of the strategy, as in `--strategy`.
    const fn text(self) -> &'static str {
        match self {
            Self::Exhaustive => "exhaustive",
            Self::Linear => "linear",
            Self::Golden => "golden",
            Self::Guided => "guided",
        }
    }
}

impl Display for StrategyName {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.pad(self.text())
    }
}

/// A text that is not the name of a strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy `{0}`: use `exhaustive`, `linear`, `golden` or `guided`")]
pub struct StrategyNameError(String);

impl FromStr for StrategyName {
    type Err = StrategyNameError;

    fn from_str(text: &str) -> Result<Self, StrategyNameError> {
        let mut all = Self::ALL.into_iter();
        all.find(|name| name.text() == text)
            .ok_or_else(|| StrategyNameError(text.to_owned()))
    }
}
