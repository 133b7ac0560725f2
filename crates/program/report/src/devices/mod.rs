//! `sweetspot devices` and `sweetspot doctor`: devices, their sensors, and what the system lacks.

mod text;

pub use text::{devices_json, devices_text, doctor_json, doctor_text};
