//! `sweetspot calibrate`: a sensor that was compared with a meter.

mod json;
mod text;

pub use json::calibrate_json;
pub(crate) use json::calibration_json;
pub use text::calibrate_text;
pub(crate) use text::{calibration_sentences, method_text};
