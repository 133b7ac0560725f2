//! One line on the terminal that tells how it goes, and is written over.

use std::io::{IsTerminal, Write, stderr};

/// On standard error, and nowhere where that is no terminal.
pub struct LiveLine {
    on_terminal: bool,
    shown: bool,
}

impl LiveLine {
    pub fn new() -> Self {
        Self {
            on_terminal: stderr().is_terminal(),
            shown: false,
        }
    }

    pub fn is_wanted(&self) -> bool {
        self.on_terminal
    }

    /// What the command prints then begins at the begin of the line.
    pub fn show(&mut self, text: &str) {
        if self.on_terminal {
            let _ = write!(stderr(), "\r\x1b[K{}\r", cut(text, width()));
            self.shown = true;
        }
    }

    pub fn clear(&mut self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
            self.shown = false;
        }
    }

    pub fn tell(&mut self, note: &str) {
        self.clear();
        eprintln!("sweetspot: {note}");
    }
}

/// Columns, where the terminal says.
fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stderr()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// A longer line would go on below and stay there.
fn cut(text: &str, width: Option<usize>) -> String {
    let most = width.map_or(usize::MAX, |width| width - 1);
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_within_its_terminal() {
        assert_eq!(cut("300 of 400 W", Some(8)), "300 of ");
        assert_eq!(cut("300 of 400 W", None), "300 of 400 W");
        assert_eq!(cut("300", Some(1)), "");
    }
}
