//! `budget`: keeps the sum of the power of several GPUs under a budget, and gives watts to where they bring most.
//!
//! A [`Budgeter`] is a state machine without a clock: it takes power readings, progress reports and changes of the
//! budget, and returns the power caps to set, in order. The sum of the caps never exceeds the budget: caps are lowered
//! first, and others are raised only after the GPUs have followed.
//!
//! For each GPU it learns how throughput depends on the cap ([`ThroughputCurve`]), and divides the budget where the next
//! watt brings the largest share of a program's own full throughput ([`divide()`]).

mod budgeter;
mod config;
mod curve;
mod divide;
mod event;
mod gpu;
mod progress;
mod rest_of_node;
mod statistics;

pub use budgeter::Budgeter;
pub use config::{BudgetConfig, BudgetConfigError, BudgetedDevice};
pub use curve::{CurveShape, LearnedCurve, ThroughputCurve};
pub use divide::{Claim, divide, equal_shares};
pub use event::{BudgetAction, BudgetEvent, BudgetNotice, GpuReading};
pub use rest_of_node::RestOfNode;
pub use statistics::BudgetStatistics;
