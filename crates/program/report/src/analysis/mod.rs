//! Evaluates a study for an objective and limits: the choice, the ranges that beat the reference, means along an axis.

pub mod accuracy;
pub mod answer;
pub mod choices;
pub mod groups;
pub mod ranges;
pub mod recommendation;
pub mod view;
