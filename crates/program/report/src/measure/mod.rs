//! `sweetspot measure`: time, energy and power of one command.

mod csv;
mod json;
mod node;
mod observer;
mod serving;
mod text;

pub use self::csv::measurement_csv;
pub use json::measurement_json;
pub(crate) use json::{limits_json, machine_json};
pub use text::{measurement_markdown, measurement_text, one_line};
