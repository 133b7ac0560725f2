//! Studies for people and for programs: terminal tables, sentences, JSON, CSV, Markdown.
//!
//! Pure text from typed results; where it goes is the program's business.

mod choices;
mod csv_text;
mod deviations;
mod devices;
mod fit;
mod json;
mod measure;
mod measure_json;
mod profiles;
mod reproduce;
mod studies;
mod table;
mod terminal;

pub use choices::{Row, choices, recommendation};
pub use csv_text::study_csv;
pub use deviations::{deviations_summary, deviations_text};
pub use devices::{devices_json, devices_text, doctor_json, doctor_text};
pub use fit::fit_text;
pub use json::study_json;
pub use measure::{measurement_markdown, measurement_text};
pub use measure_json::{measurement_csv, measurement_json};
pub use profiles::profiles_text;
pub use reproduce::{
    reproduction_csv, reproduction_json, reproduction_markdown, reproduction_summary,
    reproduction_text,
};
pub use studies::{configuration_text, duration_text, plan_text, studies_text, study_runs_text};
pub use terminal::{study_markdown, study_text};
