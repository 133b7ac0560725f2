//! `sweetspot hold`: the most throughput under a power cap.

mod json;
mod text;

pub use json::hold_json;
pub use text::{hold_figure, hold_text, latency_text, setting_text};
