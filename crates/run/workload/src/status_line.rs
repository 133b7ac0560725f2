//! The status line of this program, below the output of the user's command on the same terminal.
//!
//! The two are written one after the other, never at the same time. Before output of the command is shown, the status line
//! is erased. It is drawn again below the output, but only after a complete line: while the command shows a progress bar,
//! there is no status line.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::command::OutputTarget;

/// Goes to the start of the line and erases it.
const ERASE_LINE: &str = "\r\x1b[K";

/// What is on the terminal of this program.
static TERMINAL: Mutex<Terminal> = Mutex::new(Terminal {
    status: None,
    is_drawn: false,
    is_within_line: false,
});

/// What is on a terminal.
struct Terminal {
    /// The status to show; `None` if there is none.
    status: Option<String>,
    /// Whether the status line is on the terminal at the moment.
    is_drawn: bool,
    /// Whether the command's output has not ended its last line.
    is_within_line: bool,
}

impl Terminal {
    /// The only one.
    fn lock() -> MutexGuard<'static, Self> {
        TERMINAL.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What erases the status line; nothing if it is not drawn.
    fn erase(&mut self) -> &'static str {
        match std::mem::take(&mut self.is_drawn) {
            true => ERASE_LINE,
            false => "",
        }
    }

    /// What draws the status line and leaves the cursor at its start; nothing within a line of the command's.
    fn draw(&mut self) -> String {
        let Some(status) = self.status.as_ref().filter(|_| !self.is_within_line) else {
            return String::new();
        };
        self.is_drawn = true;
        format!("{ERASE_LINE}{status}\r")
    }

    /// Takes output of the command: what erases the status line before it, and what draws it again after it.
    fn pass(&mut self, output: &[u8]) -> (&'static str, String) {
        let before = self.erase();
        self.is_within_line = output
            .last()
            .map_or(self.is_within_line, |last| *last != b'\n');
        (before, self.draw())
    }
}

/// Shows a status line on standard error, which must be a terminal. The text must fit one line of it.
pub fn show_status(text: &str) {
    let mut terminal = Terminal::lock();
    terminal.status = Some(text.to_owned());
    let shown = terminal.draw();
    let _ = std::io::stderr().write_all(shown.as_bytes());
}

/// Removes the status line, and begins a new line if the command has not ended its last one, for a message of this
/// program.
pub fn clear_status() {
    let mut terminal = Terminal::lock();
    terminal.status = None;
    let erased = terminal.erase();
    let line_end = match std::mem::take(&mut terminal.is_within_line) {
        true => "\n",
        false => "",
    };
    let _ = write!(std::io::stderr(), "{erased}{line_end}");
}

/// Shows output of the command. Errors are ignored: if this program's own output is closed, the command goes on.
pub(crate) fn show_output(target: OutputTarget, bytes: &[u8]) {
    let (mut out, mut error) = (std::io::stdout(), std::io::stderr());
    let (stream, is_terminal): (&mut dyn Write, bool) = match target {
        OutputTarget::StandardOutput => {
            let is_terminal = out.is_terminal();
            (&mut out, is_terminal)
        }
        OutputTarget::StandardError => {
            let is_terminal = error.is_terminal();
            (&mut error, is_terminal)
        }
        OutputTarget::Hidden => return,
    };
    if !is_terminal {
        let _ = stream.write_all(bytes).and_then(|()| stream.flush());
        return;
    }
    let mut terminal = Terminal::lock();
    let (before, after) = terminal.pass(bytes);
    // The status line is on standard error, and the order of writes to two streams of one terminal is kept.
    let _ = std::io::stderr().write_all(before.as_bytes());
    let _ = stream.write_all(bytes).and_then(|()| stream.flush());
    let _ = std::io::stderr().write_all(after.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_never_mixes_with_output() {
        let mut terminal = Terminal {
            status: None,
            is_drawn: false,
            is_within_line: false,
        };
        assert_eq!(terminal.pass(b"one\n"), ("", String::new()));
        terminal.status = Some("300 W".to_owned());
        let drawn = format!("{ERASE_LINE}300 W\r");
        assert_eq!(terminal.draw(), drawn);
        // A whole line: erased before it, drawn again after it.
        assert_eq!(terminal.pass(b"two\n"), (ERASE_LINE, drawn.clone()));
        // A part of a line: the status waits until the line ends.
        assert_eq!(terminal.pass(b"\r 10 %"), (ERASE_LINE, String::new()));
        assert_eq!(terminal.draw(), "");
        assert_eq!(terminal.pass(b"\r 20 %"), ("", String::new()));
        assert_eq!(terminal.pass(b"\n"), ("", drawn));
    }
}
