//! One line on the terminal that shows the current state and is overwritten.

use std::io::{IsTerminal, stderr};

use sweetspot_workload::{clear_status, show_status};

use crate::messages::{print_note, printable};
use crate::terminal::columns_of;

/// A status line on standard error; nothing is shown if standard error is not a terminal.
pub struct LiveLine {
    is_terminal: bool,
}

impl LiveLine {
    pub fn new() -> Self {
        Self {
            is_terminal: stderr().is_terminal(),
        }
    }

    /// Whether standard error is a terminal, on which the line is shown.
    pub fn is_shown(&self) -> bool {
        self.is_terminal
    }

    /// Replaces the line, below the output of the user's command.
    pub fn show(&self, text: &str) {
        if self.is_terminal {
            show_status(&truncate(&printable(text), columns_of(&stderr())));
        }
    }

    /// Erases the line.
    pub fn clear(&self) {
        if self.is_terminal {
            clear_status();
        }
    }

    /// Prints a message on a line of its own.
    pub fn print_message(&self, message: &str) {
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
