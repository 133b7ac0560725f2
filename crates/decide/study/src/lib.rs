//! A study: the axes explored, the plan of runs, what the runs came to, and where all of it is kept.
//!
//! A run's seed is a hash of the study's seed, its configuration and its repeat, so a plan gives the
//! same results in any order, on any number of threads, and after any interruption.
//! Left to others: making the runs happen, choosing among the results.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod axes;
mod configuration;
mod definition;
mod error;
mod outline;
mod plan;
mod prior;
mod results;
mod run;
mod samples;
mod search;
mod store;
mod template;
mod text_field;

pub use axes::{
    AxesError, AxisError, MOST_VALUES, OfferedKnobs, ResolvedAxes, parse_axis, resolve_axes,
};
pub use configuration::{Axis, BATCH, Configuration};
pub use definition::{AxisText, Definition, DefinitionError};
pub use error::StudyError;
pub use outline::{Outline, ReferenceFailed, SweepProgress, format_gpu_list};
pub use plan::{Order, Plan, Task, Until};
pub use prior::PriorStudies;
pub use results::{Point, Study, Subject, WorkloadInfo};
pub use run::{
    DeviceEnergy, Energies, Energy, EnergyOf, Enforced, Failure, PhaseResult, RunEnd, RunRecord,
    RunResult, Status,
};
pub use samples::{Column, Quantity, Series, read_samples, write_samples};
pub use search::{EarlierStudy, Search, SearchError, Searched};
pub use store::{
    Info, SCHEMA, Store, StoreError, is_study, merge, read_plan_file, samples_file, write_task,
    write_whole,
};
pub use template::{TemplateError, environment, fill, is_name};
