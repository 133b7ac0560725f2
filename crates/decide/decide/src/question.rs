//! What a user wants to know.

use crate::{Limit, Objective, Tariff};

/// By what to choose, within which limits, at which prices.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// By what.
    pub objective: Objective,
    /// Within what.
    pub limits: Vec<Limit>,
    /// What energy and time cost.
    pub tariff: Tariff,
}

impl From<Objective> for Question {
    fn from(objective: Objective) -> Self {
        Self {
            objective,
            limits: Vec::new(),
            tariff: Tariff::NONE,
        }
    }
}
