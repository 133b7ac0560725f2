//! A study: its axes, its plan of runs, its results, and the folder in which it is stored.
//!
//! A run's seed is a hash of the study's seed, its configuration and its repeat, so a plan gives the
//! same results in any order, on any number of threads, and after any interruption.
//! Other crates make the runs and choose among the results.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod axes;
mod axis_text;
mod batch_costs;
mod configuration;
mod definition;
mod error;
mod nodes;
mod outline;
mod places;
mod plan;
mod prior;
mod results;
mod run;
mod samples;
mod search;
mod store;
mod template;
mod text_field;
mod training;
mod until_sure;
mod value_table;

pub use axes::{
    AxesError, AxisError, KnobValues, ResolvedAxes, SupportedKnobs, common_cap_range, parse_axis,
    resolve_axes, written_configurations,
};
pub use axis_text::AxisText;
pub use batch_costs::{BatchCosts, NO_PHASE_ENERGY, Scaling, WAITING_PHASES};
pub use configuration::{Axis, BATCH_PARAMETER, Configuration};
pub use definition::{Definition, DefinitionError};
pub use error::StudyError;
pub use nodes::{NodeDifference, NodeResult};
pub use outline::{
    AddedRuns, Outline, ReferenceFailed, RepeatsError, SweepProgress, format_gpu_list,
};
pub use plan::{Order, Plan, PrecisionTarget, Task};
pub use prior::PriorStudies;
pub use results::{Point, Study, Subject, WorkloadInfo};
pub use run::{
    DeviceEnergy, DevicePhase, Energies, Energy, EnergyOf, Failure, PhaseResult, ReducedCap,
    RunEnding, RunPlace, RunRecord, RunResult, Status,
};
pub use samples::{Column, Quantity, Series, read_samples, write_samples};
pub use search::{PriorResults, SearchError, SearchProgress, StudySearch};
pub use store::{
    JOBS, SCHEMA, Store, StoreError, StoredRuns, UNFINISHED, is_study, merge, read_plan_file,
    samples_file, task_file, write_atomically, write_atomically_with_mode, write_plan_file,
    write_task,
};
pub use template::{TemplateError, fill_placeholders, is_parameter_name, run_environment};
pub use training::{TrainingError, TrainingLength};
pub use until_sure::{Certainty, CertaintyTarget, SURE_CHANCE, SURE_LOSS, Until, is_sure};
pub use value_table::{ValueTable, ValueTableError};
