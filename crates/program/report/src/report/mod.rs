//! `sweetspot report`: the recommendation from a study, for an objective and limits.

mod json;
mod text;

pub use json::report_json;
pub use text::{report_markdown, report_text};
