//! `sweetspot hold`: the most throughput under a power cap.

mod figure;
mod gpus;
mod json;
mod text;

pub use figure::hold_figure;
pub use json::hold_json;
pub use text::{hold_text, latency_text, setting_text};
