//! `sweetspot tune`: a training run that is tuned while it runs.

mod figure;
mod gpus;
mod json;
mod savings;
mod text;

pub use figure::tuning_figure;
pub(crate) use gpus::{model_names, settings_text};
pub use json::tuning_json;
pub use text::{tuning_markdown, tuning_text};
