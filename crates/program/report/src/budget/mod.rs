//! `sweetspot budget`: GPUs that were kept together under a power budget.

mod json;
mod text;

pub use json::budget_json;
pub use text::budget_text;
