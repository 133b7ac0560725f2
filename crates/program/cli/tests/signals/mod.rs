//! Signals to the tool: every wait ends, and no process of a command survives.

mod bounds;
mod groups;
