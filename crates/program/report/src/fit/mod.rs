//! `sweetspot fit`: a profile from measurements.

mod json;
mod text;
mod workload;

pub use json::fit_study_json;
pub use text::fit_study_text;
pub use workload::fit_text;
