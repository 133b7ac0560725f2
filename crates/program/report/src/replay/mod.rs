//! `sweetspot replay`: search strategies on recorded curves.

mod text;

pub use text::{replay_csv, replay_figures, replay_json, replay_markdown, replay_text};
