//! What the program shows on terminals of different widths, with and without colours.

mod closed;
mod colours;
mod live;
mod status_line;
mod widths;
