//! A study: the axes explored, the plan of runs, and what the runs came to.
//!
//! A run's seed is a hash of the study's seed, its configuration and its repeat, so a plan gives the
//! same results in any order and on any number of threads.
//! Left to others: making the runs happen, choosing among the results.

mod axis;
mod plan;
mod results;

pub use axis::{AxisError, MOST_VALUES, parse_axis};
pub use plan::{Configuration, Plan, PlannedRun, Varied};
pub use results::{
    Best, EnergyOf, PhaseResult, Point, RunEnd, RunResult, Status, Study, WorkloadInfo,
};
