//! Which setting is best: objectives over measured time and energy, and the choice among them.
//!
//! Pure: values in, a choice out. Objectives that compare with a reference are given one, and it stays
//! the same for the whole study.

mod choice;
mod objective;

pub use choice::{best, pareto};
pub use objective::{Objective, ObjectiveError, Outcome};
