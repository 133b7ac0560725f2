//! `sweetspot doctor`: what works on a machine, and what is missing.

mod json;
mod text;

pub use json::doctor_json;
pub use text::doctor_text;
