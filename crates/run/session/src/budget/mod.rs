//! `budget`: keeps the power of several GPUs together under a budget.

mod budget_loop;
mod error;
mod holds;
mod messages;
mod node;
mod programs;
mod real;
mod request;
mod result;

pub use error::BudgetError;
pub use real::budget;
pub use request::{BudgetRequest, GpuOption};
pub use result::{BudgetResult, BudgetSlice, BudgetStatus, BudgetedGpuResult, NodeBudgetResult};
