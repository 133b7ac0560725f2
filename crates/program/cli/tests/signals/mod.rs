//! Signals to the tool: every wait has an end, and nothing of a command outlives them.

mod bounds;
mod groups;
