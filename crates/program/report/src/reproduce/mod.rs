//! `sweetspot reproduce`: a published study beside its reproduction.

mod csv;
mod figure;
mod json;
mod text;

pub use self::csv::reproduction_csv;
pub use figure::reproduction_figures;
pub use json::reproduction_json;
pub use text::{reproduction_markdown, reproduction_summary, reproduction_text};
