//! `sweetspot reproduce`: a published study beside its reproduction.

mod text;

pub use text::{
    reproduction_csv, reproduction_json, reproduction_markdown, reproduction_summary,
    reproduction_text,
};
