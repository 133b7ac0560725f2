//! One line on the terminal that shows the current state and is overwritten.

use std::io::{IsTerminal, Write, stderr};

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
            let _ = write!(stderr(), "\r\x1b[K{}\r", truncate(text, terminal_width()));
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
        eprintln!("sweetspot: {message}");
    }
}

/// The number of columns of the terminal, if it is known.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stderr()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// Shortens a line to the width of the terminal: a wrapped line could not be overwritten.
fn truncate(text: &str, width: Option<usize>) -> String {
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
