//! `sweetspot fit`: a profile from measurements.

mod json;
mod text;
mod workload;

pub use json::fit_json;
pub use text::fit_text;
pub use workload::fit_workload_text;
