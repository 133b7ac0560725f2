//! `sweetspot network`: the operations, bytes and bounds of a network.

mod json;
mod text;
mod units;

pub use json::{network_csv, network_json};
pub use text::{NetworkRows, NetworkView, network_markdown, network_text, networks_text};
