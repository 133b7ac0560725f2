//! One line on the terminal that shows the current state and is overwritten.

use std::io::{IsTerminal, Write, stderr};

use crate::messages::print_note;
use crate::terminal::columns_of;

/// A status line on standard error; nothing is shown if standard error is not a terminal.
pub struct LiveLine {
    is_terminal: bool,
    has_text: bool,
}

impl LiveLine {
    pub fn new() -> Self {
        Self {
            is_terminal: stderr().is_terminal(),
            has_text: false,
        }
    }

    /// Whether standard error is a terminal, on which the line is shown.
    pub fn is_shown(&self) -> bool {
        self.is_terminal
    }

    /// Replaces the line and leaves the cursor at its start, so output of the user's command overwrites the line.
    pub fn show(&mut self, text: &str) {
        if self.is_terminal {
            let _ = write!(
                stderr(),
                "\r\x1b[K{}\r",
                truncate(text, columns_of(&stderr()))
            );
            self.has_text = true;
        }
    }

    /// Erases the line.
    pub fn clear(&mut self) {
        if self.has_text {
            let _ = write!(stderr(), "\r\x1b[K");
            self.has_text = false;
        }
    }

    /// Prints a message on a line of its own.
    pub fn print_message(&mut self, message: &str) {
        self.clear();
        print_note(message);
    }
}

/// Shortens a line to the width of the terminal: a wrapped line could not be overwritten.
pub fn truncate(text: &str, width: Option<usize>) -> String {
    let max_chars = width.map_or(usize::MAX, |width| width - 1);
    text.chars().take(max_chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shortened_to_the_terminal() {
        assert_eq!(truncate("300 of 400 W", Some(8)), "300 of ");
        assert_eq!(truncate("300 of 400 W", None), "300 of 400 W");
        assert_eq!(truncate("300", Some(1)), "");
    }
}
