//! Messages on standard error, each with the name of the program before it.
//!
//! Failures to write are ignored: standard error may be closed or full, and the exit code reports errors too.

use std::io::{IsTerminal, Write};

use sweetspot_report::{Line, Role, Text};

use crate::terminal::{stderr_has_colours, stderr_layout};

/// Prints an error.
pub fn print_error(message: &str) {
    print_with_prefix(message, Role::Bad);
}

/// Prints a warning.
pub fn print_warning(message: &str) {
    print_with_prefix(message, Role::Warning);
}

/// Prints a message that is neither an error nor a warning.
pub fn print_note(message: &str) {
    print_with_prefix(message, Role::Secondary);
}

/// Prints a message after the name of the program. It is not wrapped, so that a command in it can be copied.
fn print_with_prefix(message: &str, role: Role) {
    let prefix = prefix(role, stderr_has_colours());
    let message = printable(message);
    let _ = writeln!(std::io::stderr(), "{prefix} {message}");
}

/// Replaces control characters, which names in files and drivers may contain and which a terminal would obey.
pub fn printable(message: &str) -> String {
    let is_unsafe = |letter: char| letter.is_control() && letter != '\n';
    message.replace(is_unsafe, "\u{fffd}")
}

/// The name of the program, which begins each message.
fn prefix(role: Role, has_colours: bool) -> String {
    let style = role.style();
    match has_colours {
        true => format!("{style}sweetspot:{style:#}"),
        false => "sweetspot:".to_owned(),
    }
}

/// Prints what to do next after a command whose standard output belongs to the user's command or to a script. It is for
/// people only: it is left out where standard error is not a terminal.
pub fn print_next_step(step: Line) {
    if std::io::stderr().is_terminal() {
        print_text(&step.into());
    }
}

/// Prints a text to standard error, because a document goes to standard output.
pub fn print_text(text: &Text) {
    let text = text.render(&stderr_layout());
    let _ = write!(std::io::stderr(), "{text}");
}
