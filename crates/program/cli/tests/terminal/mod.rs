//! What the program shows on terminals of different widths, with and without colours.

#[path = "../common/terminal.rs"]
mod pseudo_terminal;

mod colours;
mod live;
mod widths;
