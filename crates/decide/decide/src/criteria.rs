//! The criteria of a choice.

use crate::{Limit, Objective, Preference, Tariff};

/// The objective, the limits and the prices by which a configuration is chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Criteria {
    /// The objective to minimise or maximise.
    pub objective: Objective,
    /// The limits that a chosen configuration must meet.
    pub limits: Vec<Limit>,
    /// The prices of energy and devices, and the carbon intensity.
    pub tariff: Tariff,
    /// Which configuration to take among those that may be the best.
    pub preference: Preference,
}

impl From<Objective> for Criteria {
    fn from(objective: Objective) -> Self {
        Self {
            objective,
            limits: Vec::new(),
            tariff: Tariff::NONE,
            preference: Preference::default(),
        }
    }
}
