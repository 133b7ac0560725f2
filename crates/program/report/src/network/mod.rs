//! `sweetspot network`: the operations, bytes and bounds of a network.

mod csv;
mod json;
mod prediction;
mod table;
mod text;
mod units;

pub use self::csv::network_csv;
pub use json::network_json;
pub use text::{NetworkRows, NetworkView, network_markdown, network_text, networks_text};
