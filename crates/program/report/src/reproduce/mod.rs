//! `sweetspot reproduce`: a published study beside its reproduction.

mod csv;
mod figure;
mod json;
mod on_gpu;
mod text;

pub use self::csv::reproduction_csv;
pub use figure::reproduction_figures;
pub use json::reproduction_json;
pub(crate) use on_gpu::own_reproduction_html;
pub use on_gpu::{own_reproduction_json, own_reproduction_markdown, own_reproduction_text};
pub use text::{reproduction_markdown, reproduction_summary, reproduction_text};
