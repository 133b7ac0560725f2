//! Strategies by name.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use super::by_line::ByLine;
use super::exhaustive::Exhaustive;
use super::golden::Golden;
use super::guided::Guided;
use super::linear::Linear;
use super::{Space, Strategy, Terms};
use crate::Question;

/// A strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategyName {
    /// Every place.
    Exhaustive,
    /// From the highest value downwards in equal steps, as Zeus does.
    Linear,
    /// Golden section, as DEPO does.
    Golden,
    /// By a model of the physics.
    Guided,
}

impl StrategyName {
    /// All, the simplest first.
    pub const ALL: [Self; 4] = [Self::Exhaustive, Self::Linear, Self::Golden, Self::Guided];

    /// A search for the answer to a question.
    pub fn start(self, space: Space, question: &Question, terms: Terms) -> Box<dyn Strategy> {
        match self {
            Self::Exhaustive => Box::new(Exhaustive::new(space, question, terms)),
            Self::Linear => {
                let search = Linear::new(&terms);
                Box::new(ByLine::new(space, question, &terms, search))
            }
            Self::Golden => {
                let search = Golden::new(&terms);
                Box::new(ByLine::new(space, question, &terms, search))
            }
            Self::Guided => Box::new(Guided::new(space, question, terms)),
        }
    }

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

/// Text that names no strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no strategy: write `exhaustive`, `linear`, `golden` or `guided`")]
pub struct StrategyNameError(String);

impl FromStr for StrategyName {
    type Err = StrategyNameError;

    fn from_str(text: &str) -> Result<Self, StrategyNameError> {
        let mut all = Self::ALL.into_iter();
        all.find(|name| name.text() == text)
            .ok_or_else(|| StrategyNameError(text.to_owned()))
    }
}
