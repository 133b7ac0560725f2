//! `sweetspot devices`: devices with their sensors and knobs.

mod json;
mod meters;
mod text;

pub use json::devices_json;
pub use text::devices_text;
