//! `sweetspot fit`: a profile from measurements.

mod text;
mod workload;

pub use text::{fit_study_json, fit_study_text};
pub use workload::fit_text;
