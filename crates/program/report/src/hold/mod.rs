//! `sweetspot hold`: the most throughput under a power cap.

mod json;
mod text;

pub use json::held_json;
pub use text::{held_figure, held_text, latency_text, setting_text};
