//! `sweetspot report`: the answer to a question about a study.

mod json;
mod text;

pub use json::report_json;
pub use text::{report_markdown, report_text};
