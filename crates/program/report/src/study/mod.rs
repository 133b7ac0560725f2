//! Studies: tables, documents and pages, the plan of one, the list of all.

mod batch_json;
mod batches;
mod csv;
mod html;
mod json;
mod list;
mod nodes;
mod plan;
mod text;

pub use self::csv::study_csv;
pub(crate) use batches::batch_tables;
pub use html::{ReportExtras, study_html};
pub use json::study_json;
pub(crate) use json::{columns, energy_of, recommendation, search_end, settings, status, summary};
pub use list::{studies_text, study_runs_text};
pub(crate) use nodes::{node_warning, nodes_table};
pub use plan::{plan_text, unplanned_text};
pub(crate) use text::{failures, rows, shortfalls, title};
pub use text::{study_markdown, study_text};
