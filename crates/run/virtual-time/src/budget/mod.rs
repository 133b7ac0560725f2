//! `budget` in virtual time: GPUs and programs are simulated; the control algorithm is the same as on real GPUs.

mod gpu;
mod simulation;

use crate::hold::load::scale_load;

pub use gpu::{BudgetedGpu, GpuSpan, SimulatedProgram};
pub use simulation::{
    BudgetChange, BudgetOutcome, BudgetPolicy, BudgetSample, BudgetScenario, simulate_budget,
};
