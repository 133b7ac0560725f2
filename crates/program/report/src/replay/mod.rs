//! `sweetspot replay`: search strategies on recorded curves.

mod csv;
mod figure;
mod json;
mod text;

pub use self::csv::replay_csv;
pub use figure::replay_figures;
pub use json::replay_json;
pub use text::{replay_markdown, replay_text};
