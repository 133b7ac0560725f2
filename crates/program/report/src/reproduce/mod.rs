//! `sweetspot reproduce`: a published study beside its reproduction.

mod csv;
mod json;
mod text;

pub use self::csv::reproduction_csv;
pub use json::reproduction_json;
pub use text::{reproduction_markdown, reproduction_summary, reproduction_text};
